import type { Ref } from "../core/ref.ts"
import type { Dex } from "../tools/context.ts"

/**
 * A change in a project. `files` are relative to the project, with forward slashes. The field is missing if too many files
 * changed, or if dex does not know which. `git` is true if the git history may have changed.
 */
export type ProjectChange = { project: string; files?: string[]; git: boolean }

/**
 * The functions that are called after a change, one after the other. Errors are reported and do not affect the other listeners.
 */
export type Listeners = {
  /** Called for conversations with new messages, which are already in the history and the index. */
  messages: ((dex: Dex, refs: Ref[]) => Promise<void>)[]
  /**
   * Called for changes to the files or the git history of a project that the user opted in. A listener returns `busy` if
   * another process is doing the work, so that dex tries again soon.
   */
  project: ((dex: Dex, change: ProjectChange) => Promise<"busy" | undefined>)[]
}

/**
 * The listeners of `dex watch`. They run in the process that reads (`reader-process.ts`), never in the process that waits for
 * changes. A listener imports what it needs when it is called.
 */
export const listeners: Listeners = {
  messages: [learn, updateUsageLine, notifyOfMessages, sendShared],
  project: [learnProjectFacts, notifyOfFiles],
}

/** Learns from conversations, if learned facts were ever requested. */
async function learn(dex: Dex): Promise<void> {
  if (!dex.hasKnowledge()) return
  const { learnNow } = await import("../tools/learned.ts")
  await learnNow(dex)
}

/** Updates the line that `dex usage --line` shows. */
async function updateUsageLine(dex: Dex): Promise<void> {
  const { isStatusLineUpdated } = await import("../tools/usage/line-kept.ts")
  if (!(await isStatusLineUpdated(dex))) return
  const { saveStatusLine } = await import("../tools/usage/keep-line.ts")
  saveStatusLine(dex, await dex.spending())
}

async function learnProjectFacts(dex: Dex, change: ProjectChange): Promise<"busy" | undefined> {
  const { whileNobodyLearns } = await import("../tools/learned.ts")
  const hasRead = await whileNobodyLearns(dex, async () => {
    await readCommits(dex, change)
    await readCode(dex, change)
    return true
  })
  return hasRead ? undefined : "busy"
}

async function readCommits(dex: Dex, { project, git }: ProjectChange): Promise<void> {
  if (!git) return
  const facts = await import("../tools/project-facts.ts")
  await facts.learnFromGit(dex, await dex.knowledge(), dex.projectOf(project))
}

const MAX_SINGLE_FILES = 50

async function readCode(dex: Dex, { project: folder, files }: ProjectChange): Promise<void> {
  const project = dex.projectOf(folder)
  const { syncProjectCode, updateCodeFile } = await import("../ingest/project-code.ts")
  const knowledge = await dex.knowledge()
  const signal = dex.signal
  if (files === undefined || files.length > MAX_SINGLE_FILES)
    await syncProjectCode({ knowledge, project, folder }, signal ? { signal } : {})
  else for (const file of files) await updateCodeFile({ knowledge, project, folder }, file)
}

/** Notifies subscriptions of the project; see docs/subscriptions.md. */
async function notifyOfFiles(dex: Dex, { project, files = [] }: ProjectChange): Promise<undefined> {
  if (files.length === 0 || !dex.hasSuggestions()) return
  const { notifyAboutFiles } = await import("../tools/subscriptions/notify-subscribers.ts")
  await notifyAboutFiles(dex, dex.projectOf(project), files)
}

async function notifyOfMessages(dex: Dex, refs: Ref[]): Promise<void> {
  if (!dex.hasSuggestions()) return
  const { notifyAboutMessages } = await import("../tools/subscriptions/notify-subscribers.ts")
  await notifyAboutMessages(dex, refs)
}

/**
 * The maximum time that sending may delay other work, in milliseconds. Whatever is not sent in this time is sent with the next
 * change, or by the next sync.
 */
const MAX_SEND_MS = 10_000

/** Sends what the user shares with a hub. If the hub fails or cannot be reached, only `dex hub status` reports it. */
async function sendShared(dex: Dex): Promise<void> {
  const { isSharing } = await import("../config/hub.ts")
  if (!isSharing(dex.home)) return
  const { pushNow } = await import("../tools/hub/push-now.ts")
  const { isHubError } = await import("../hub-client/client.ts")
  await pushNow(dex, { isAutomatic: true, maxMs: MAX_SEND_MS }).catch((error: unknown) => {
    if (!isHubError(error)) throw error
  })
}
