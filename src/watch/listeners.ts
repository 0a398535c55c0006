import type { Ref } from "../core/ref.ts"
import type { Dex } from "../tools/context.ts"

/** Files are relative to the project, with slashes. Absent if there are many, or if it is not known which ones. */
export type ProjectChange = { project: string; files?: string[]; git: boolean }

/** Called after a change, one listener after the other. Errors are reported and do not affect the other listeners. */
export type Listeners = {
  /** Conversations that have new messages; they are already in the history and the index. */
  messages: ((dex: Dex, refs: Ref[]) => Promise<void>)[]
  /**
   * Files of a project that the user opted in, or its git history. `busy`: another process is doing the work, so try again soon.
   */
  project: ((dex: Dex, change: ProjectChange) => Promise<"busy" | undefined>)[]
}

/**
 * The extension point of `dex watch`: project facts, subscriptions. Listeners run in the reading process, never in the waiting
 * one. Import what you need inside the function.
 */
export const listeners: Listeners = {
  messages: [learn, keepUsageLine, notifyOfMessages, sendShared],
  project: [readFacts, notifyOfFiles],
}

/** Learns from conversations, if learned facts were ever requested. */
async function learn(dex: Dex): Promise<void> {
  if (!dex.hasKnowledge()) return
  const { learnNow } = await import("../tools/learned.ts")
  await learnNow(dex)
}

/** Updates the line that `dex usage --line` shows. */
async function keepUsageLine(dex: Dex): Promise<void> {
  const { isStatusLineUpdated } = await import("../tools/usage/line-kept.ts")
  if (!(await isStatusLineUpdated(dex))) return
  const { saveStatusLine } = await import("../tools/usage/keep-line.ts")
  saveStatusLine(dex, await dex.spending())
}

async function readFacts(dex: Dex, change: ProjectChange): Promise<"busy" | undefined> {
  const { whileNobodyLearns } = await import("../tools/learned.ts")
  const read = await whileNobodyLearns(dex, async () => {
    await readCommits(dex, change)
    await readCode(dex, change)
    return true
  })
  return read ? undefined : "busy"
}

async function readCommits(dex: Dex, { project, git }: ProjectChange): Promise<void> {
  if (!git) return
  const facts = await import("../tools/project-facts.ts")
  await facts.learnFromGit(dex, await dex.knowledge(), project)
}

const MAX_SINGLE_FILES = 50

async function readCode(dex: Dex, { project, files }: ProjectChange): Promise<void> {
  const { syncProjectCode, updateCodeFile } = await import("../ingest/project-code.ts")
  const knowledge = await dex.knowledge()
  const signal = dex.signal
  if (files === undefined || files.length > MAX_SINGLE_FILES)
    await syncProjectCode({ knowledge, project }, signal ? { signal } : {})
  else for (const file of files) await updateCodeFile({ knowledge, project }, file)
}

/** Notifies subscriptions of the project; see docs/subscriptions.md. */
async function notifyOfFiles(dex: Dex, { project, files = [] }: ProjectChange): Promise<undefined> {
  if (files.length === 0 || !dex.hasSuggestions()) return
  const { notifyAboutFiles } = await import("../tools/subscriptions/notify-subscribers.ts")
  await notifyAboutFiles(dex, project, files)
}

async function notifyOfMessages(dex: Dex, refs: Ref[]): Promise<void> {
  if (!dex.hasSuggestions()) return
  const { notifyAboutMessages } = await import("../tools/subscriptions/notify-subscribers.ts")
  await notifyAboutMessages(dex, refs)
}

/**
 * The longest time that sending may delay other work, in milliseconds. The rest is sent with the next change, or by the next
 * sync.
 */
const MAX_SEND_MS = 10_000

/** Sends what the user shares with a hub. If the hub cannot be reached, only `dex hub status` reports it. */
async function sendShared(dex: Dex): Promise<void> {
  const { isSharing } = await import("../config/hub.ts")
  if (!isSharing(dex.home)) return
  const { pushNow } = await import("../tools/hub/push-now.ts")
  const { isHubError } = await import("../hub-client/client.ts")
  await pushNow(dex, { isAutomatic: true, maxMs: MAX_SEND_MS }).catch((error: unknown) => {
    if (!isHubError(error)) throw error
  })
}
