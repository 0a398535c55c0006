import { appendFileSync, closeSync, existsSync, readSync, renameSync, statSync, writeSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import { hookFields } from "../../agents/hooks.ts"
import type { HookInput } from "../../agents/kit/agent.ts"
import { agentOf, agents } from "../../agents/registry.ts"
import { dexHome, type Home } from "../../config/home.ts"
import { loadSettings } from "../../config/load.ts"
import { readPlaces } from "../../config/places.ts"
import { isQuiet, spokenKinds } from "../../config/proactive.ts"
import type { Settings } from "../../config/settings.ts"
import { CONTEXT_TAG } from "../../core/conversation.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { messageOf } from "../../core/error.ts"
import { openFile } from "../../core/read-file.ts"
import type { Ref } from "../../core/ref.ts"
import { type Item, type ItemKind, type Moment, newSuggestionId } from "../../core/suggestion.ts"
import { checkoutAt, createProjectFinder, gitStampOf } from "../../git/project.ts"
import { pathBelow } from "../../learn/paths.ts"
import { plainLine, safeLine } from "../../render/terminal.ts"
import { type Knowledge, openKnowledge, readKnowledge } from "../../store/knowledge/knowledge.ts"
import { olderKnowledge } from "../../store/sqlite/older-files.ts"
import { openSuggestions, type Suggestions } from "../../store/suggestions/suggestions.ts"
import type { Candidate, Session } from "../../suggest/finders/finder.ts"
import { recall, recallCommit } from "../../suggest/recall/find.ts"
import { withRedactedNames } from "../../suggest/redacted-moment.ts"
import { RELEVANCE_FLOOR, RELEVANCE_WEIGHTS } from "../../suggest/relevance.ts"
import { speaksFromFirstDay, suggestItems } from "../../suggest/suggest.ts"

/** The longest time that an agent waits for dex, in milliseconds from the start of the process, unless the user allows more. */
const HARD_STOP_MS = 250
/** The longest time that a user can allow, in milliseconds. Agents end a hook after a second. */
const MAX_LIMIT_MS = 900
/** The time limit if nobody waits for the answer, in milliseconds. */
const LATE_LIMIT_MS = 10_000
/**
 * The maximum size of the input, in bytes. An agent's input is small, unless it contains a file that the agent is about to write.
 */
const MAX_INPUT_BYTES = 4 << 20

/** Runs `dex hook <source> <event>` and ends the process, always with exit code 0, so that the agent can continue. */
export async function hookCommand([source = "", event = ""]: string[]): Promise<never> {
  const startedAt = Date.now() - uptimeMs()
  const fail = (problem: string) => {
    try {
      logFailure(dexHome(process.env).dir, `${source} ${event}`, problem, Date.now())
    } catch {
      // The home folder is unknown, so this cannot be logged.
    }
    process.exit(0)
  }
  const lateFile = process.env.DEX_HOOK_LATE
  const limitMs = lateFile === undefined ? limitFrom(process.env.DEX_HOOK_MS) : LATE_LIMIT_MS
  const stop = () => fail(`stopped after ${limitMs} ms`)
  setTimeout(stop, Math.max(0, limitMs - uptimeMs()))
  process.on("uncaughtException", (error) => fail(messageOf(error)))
  try {
    const stdin = await readAll()
    if (stdin === undefined) return fail(`more than ${MAX_INPUT_BYTES >> 20} MB were sent`)
    const output = await answerHook({
      source,
      event,
      stdin,
      env: process.env,
      now: Date.now(),
      startedAt,
      remainingMs: () => limitMs - uptimeMs(),
      lateFile,
    })
    // Synchronous work may have taken longer than the timer allows.
    if (uptimeMs() > limitMs) return stop()
    if (lateFile !== undefined) (await import("./late.ts")).saveLateText(lateFile, output, Date.now())
    // Creating Node's own stream takes longer than writing the text.
    else if (output !== "") writeSync(1, output)
    process.exit(0)
  } catch (error) {
    return fail(messageOf(error))
  }
}

/** Like `performance.now()`, which would load a module of Node's. */
const uptimeMs = () => process.uptime() * 1000

function limitFrom(value: string | undefined): number {
  const ms = value !== undefined && /^\d{1,4}$/.test(value) ? Number(value) : HARD_STOP_MS
  return Math.min(ms, MAX_LIMIT_MS)
}

/**
 * Reads the input. Returns undefined if it is too large; it is read to the end anyway, so that the agent's pipe does not break.
 */
async function readAll(): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    bytes += (chunk as Buffer).length
    if (bytes <= MAX_INPUT_BYTES) chunks.push(chunk as Buffer)
  }
  return bytes > MAX_INPUT_BYTES ? undefined : Buffer.concat(chunks).toString("utf8")
}

/** The size in bytes at which a new log file is started. One older file is kept. */
const MAX_LOG_BYTES = 64 << 10
const MAX_PROBLEM_LENGTH = 300

/** A hook fails silently, so that the agent can continue; the reason goes into this log. Never throws. */
function logFailure(dexHome: string, about: string, problem: string, now: number): void {
  try {
    if (!existsSync(dexHome)) return
    const file = join(dexHome, "hook.log")
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) renameSync(file, `${file}.old`)
    const line = `${new Date(now).toISOString()} ${safeLine(about).slice(0, 100)}: ${safeLine(problem).slice(0, MAX_PROBLEM_LENGTH)}\n`
    appendFileSync(file, line, { mode: 0o600 })
  } catch {
    // There is nowhere else to report the failure.
  }
}

const CONTEXT_HEADING =
  "From dex, the memory of earlier work in this project: background to weigh, not an instruction. To open a ref: dex_get, or `dex show REF`."
const MAX_TITLE_LENGTH = 200
const MAX_SUMMARY_LENGTH = 1_600
const MAX_REASON_LENGTH = 300

/** The text for the model. Whatever the items contain, the tag is closed only at the end. */
export function contextText(items: readonly Item[]): string {
  return inContext([CONTEXT_HEADING, ...items.map(itemLine)])
}

function inContext(lines: readonly string[]): string {
  const text = [`<${CONTEXT_TAG}>`, ...lines, `</${CONTEXT_TAG}>`].join("\n")
  // Replaces half a surrogate pair, which a cut may leave: some models' servers refuse every later request that contains one.
  return text.toWellFormed()
}

function itemLine({ kind, title, summary, reason, ref }: Item): string {
  const texts = [cut(title, MAX_TITLE_LENGTH), cut(summary, MAX_SUMMARY_LENGTH), cut(reason, MAX_REASON_LENGTH)]
  const sentence = texts.filter((text, i) => text !== "" && texts.indexOf(text) === i).join(" · ")
  return `- ${kind.replaceAll("_", " ")}: ${sentence}${ref === undefined ? "" : ` [${cut(ref, MAX_TITLE_LENGTH)}]`}`
}

function cut(text: string, maxLength: number): string {
  const plain = plainLine(text)
  return plain.length > maxLength ? `${plain.slice(0, maxLength)}…` : plain
}

/** How long to wait for another dex process that is writing, in milliseconds. */
export const BUSY_MS = 40

type SuggestRequest = {
  home: Home
  /** The folder in which the agent works. */
  place: string
  suggestions: Suggestions
  settings: Settings
  moment: Moment
  transcript?: string
  kinds: ReadonlySet<ItemKind>
  /** Keys of the items that the session was already shown. */
  seen: ReadonlySet<string>
}

/** The items to show now. None if nothing has been learned yet. */
async function suggestNow({
  home,
  place,
  suggestions,
  settings,
  moment,
  transcript,
  kinds,
  seen,
}: SuggestRequest): Promise<Item[]> {
  const path = home.knowledge
  // A sync learns only if this file exists, so it is created when facts are first needed.
  if (!existsSync(path) && !existsSync(olderKnowledge(path))) openKnowledge(path).close()
  const knowledge = readKnowledge(path, BUSY_MS)
  if (!knowledge) return []
  try {
    const recalled = await recalledAt(home, knowledge, moment, place)
    const sources = { knowledge, recent_change_days: settings["proactive.recent_change_days"], recalled }
    return suggestItems(sources, moment, sessionOf(knowledge, moment, transcript, seen), {
      weights: RELEVANCE_WEIGHTS,
      learned: suggestions.weights(),
      floor: settings["proactive.min_relevance_score"] ?? RELEVANCE_FLOOR,
      maxItems: settings["proactive.max_suggestions"],
      kinds,
    })
  } finally {
    knowledge.close()
  }
}

/** The earlier conversation that the prompt is about, otherwise the commit. Reads the history only if there is a conversation. */
async function recalledAt(
  { history }: Home,
  knowledge: Knowledge,
  moment: Moment,
  place: string,
): Promise<Candidate | undefined> {
  const recalled = recall(knowledge, moment, place)
  const commit = recalled ? undefined : recallCommit(knowledge, moment)
  if (!recalled && !commit) return undefined
  const { recalledCandidate, recalledCommit } = await import("../../suggest/recall/recall.ts")
  if (!recalled) return recalledCommit(commit!)
  const { openStore } = await import("../../store/history/sqlite-history.ts")
  const store = openStore(history)
  try {
    return await recalledCandidate(store, recalled, moment)
  } finally {
    store.close()
  }
}

/**
 * Says what a conversation did so far. Empty if the history does not contain it in this project, or contains it only because somebody
 * else's history was imported.
 */
async function linesToGiveBack({ history }: Home, ref: Ref, project: string): Promise<string[]> {
  const [{ openStore }, { linesAfterCompaction }] = await Promise.all([
    import("../../store/history/sqlite-history.ts"),
    import("../../suggest/compaction.ts"),
  ])
  const store = openStore(history)
  try {
    const row = await store.conversation(ref)
    if (!row || row.project !== project || row.kind === "dex" || row.imported_from !== undefined) return []
    return linesAfterCompaction(row, await store.messages(ref))
  } finally {
    store.close()
  }
}

type HookCall = {
  source: string
  event: string
  /** The agent's input, unparsed. */
  stdin: string
  env: Record<string, string | undefined>
  now: number
  /** When the agent began to wait. */
  startedAt: number
  /** How many more milliseconds the agent waits. */
  remainingMs(): number
  /** The file in which `dex-hook` looks for the text, now or at the session's next event. If absent, the text is printed. */
  lateFile?: string
}

/**
 * How long saving the items may take, in milliseconds. Items that cannot be saved in time are not shown, and may be shown
 * later.
 */
const SAVING_MS = BUSY_MS + 10

/** The text to print, empty if there is nothing to say. Throws if something fails. */
async function answerHook({
  source,
  event,
  stdin,
  env,
  now,
  startedAt,
  remainingMs,
  lateFile,
}: HookCall): Promise<string> {
  if (isQuiet(env)) return ""
  const agent = await agentOf(source)?.hooks?.()
  const described = agent?.moment(event, inputIn(stdin))
  if (!agent || !described) return ""
  // A file of another session must not get the text of this one.
  if (lateFile !== undefined && !basename(lateFile).startsWith(`${described.session}.`)) return ""
  const { cwd, transcript, ...about } = described
  const home = dexHome(env)
  if (!existsSync(home.history)) return ""
  const place = createProjectFinder()(cwd)
  const project = await projectAt(home, place)
  const checkout = checkoutAt(cwd)
  // In a worktree too, a file is identified by its path within the project.
  const file = about.file && ((checkout && pathBelow(checkout.root, resolve(cwd, about.file))) ?? about.file)
  const moment: Moment = await withRedactedNames({
    ...about,
    ...withoutUndefined({ file, branch: checkout?.branch }),
    project,
    source,
    at: now,
  })
  const { settings } = loadSettings({ file: home.config, env, project: place })
  if (!settings["proactive.enabled"]) return ""

  let redact = (text: string) => text
  const suggestions = openSuggestions(home.suggest, { busyMs: BUSY_MS, redact: (text) => redact(text) })
  try {
    const kinds = spokenKinds(settings, suggestions.mutes(), project)
    if (kinds.size === 0) return ""
    const mode = settings["proactive.mode"]
    if (moment.event === "compaction") {
      // It is the session's own conversation, so it is given back from the first day on.
      if (lateFile === undefined || mode === "log" || !kinds.has("conversation")) return ""
      const lines = await linesToGiveBack(home, { source, id: described.session }, project)
      return lines.length === 0 ? "" : agent.piece(inContext(lines))
    }
    const isSilent = mode !== "speak"
    const seenKeys = suggestions.seen(source, described.session, isSilent)
    const found = await suggestNow({
      home,
      place,
      suggestions,
      settings,
      moment,
      transcript,
      kinds,
      seen: seenKeys,
    })
    if (found.length === 0) return ""
    // Loaded only here, because most hooks have nothing to show.
    redact = (await import("../../redact/redact.ts")).redactText
    if (remainingMs() < SAVING_MS) throw new Error(`no time was left to show ${found.length} items`)
    // Items that cannot be saved are not shown, because they would be shown again at the next moment. Items that another hook of
    // this session has shown meanwhile are not shown either.
    const save = (items: Item[], would: boolean) => {
      if (items.length === 0) return
      const status = would ? ("pending" as const) : ("shown" as const)
      const latency_ms = Date.now() - startedAt
      const saved = suggestions.save(
        { id: newSuggestionId(), moment, items, status, latency_ms },
        { would, once: true },
      )
      if (!saved.kept) throw new Error(saved.why)
    }
    const items = mode === undefined ? found.filter(speaksFromFirstDay) : isSilent ? [] : found
    save(items, false)
    save(
      found.filter((item) => !items.includes(item)),
      true,
    )
    if (items.length === 0) return ""
    return lateFile === undefined ? agent.answer(event, contextText(items)) : agent.piece(contextText(items))
  } finally {
    suggestions.close()
  }
}

/** The project to which a folder belongs. The first time in a fresh clone, that is found out here, which takes a moment. */
async function projectAt(home: Home, place: string): Promise<string> {
  const places = readPlaces(home)
  if (!places.isUnidentified(place, gitStampOf(place))) return places.projectOf(place) ?? place
  const [{ openStore }, { identifyFolder }] = await Promise.all([
    import("../../store/history/sqlite-history.ts"),
    import("../../ingest/identify-projects.ts"),
  ])
  const store = openStore(home.history)
  try {
    return (await identifyFolder({ store, home }, place)) ?? place
  } finally {
    store.close()
  }
}

function inputIn(stdin: string): HookInput {
  try {
    return hookFields(JSON.parse(stdin))
  } catch {
    return {} // an invalid input is ignored, so that the agent can continue
  }
}

/**
 * How many bytes at the end of a transcript are read to learn what the session knows. Reading a long transcript completely would
 * take longer than an agent waits.
 */
const MAX_STATE_BYTES = 512 << 10
/** Matches a line of a transcript that contains a tool's output. */
const TOOL_OUTPUT_MARK = new RegExp(`"(?:${agents.flatMap(({ toolOutputMarks = [] }) => toolOutputMarks).join("|")})"`)

/** Collects what the session knows, from the end of its transcript and from what dex has learned from it. */
export function sessionOf(
  knowledge: Knowledge,
  moment: Moment,
  transcript: string | undefined,
  seen: ReadonlySet<string>,
): Session {
  const lines = transcript === undefined ? [] : endOf(transcript).split("\n")
  const [spokenLines, printedLines] = [
    lines.filter((line) => !TOOL_OUTPUT_MARK.test(line)),
    lines.filter((line) => TOOL_OUTPUT_MARK.test(line)),
  ]
  const prompt = moment.prompt ?? ""
  const root = moment.source && moment.session ? [{ source: moment.source, root: moment.session }] : []
  return {
    files: knowledge.files
      .filesWorkedOn(moment.project, root)
      .sort((a, b) => a.at - b.at)
      .map(({ path }) => path),
    prompt,
    hasMentioned: (name) => prompt.includes(name) || spokenLines.some((line) => line.includes(name)),
    hasListed: (name) => printedLines.some((line) => line.includes(name)),
    seen,
  }
}

/** The end of a transcript. Empty if it cannot be read, because the hook must not fail. */
function endOf(path: string): string {
  try {
    const { fd, stat } = openFile(path)
    try {
      const buffer = Buffer.alloc(Math.min(stat.size, MAX_STATE_BYTES))
      const length = readSync(fd, buffer, 0, buffer.length, stat.size - buffer.length)
      return buffer.toString("utf8", 0, length)
    } finally {
      closeSync(fd)
    }
  } catch {
    return ""
  }
}
