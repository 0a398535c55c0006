import { setImmediate } from "node:timers/promises"
import type { Hunk } from "../core/conversation.ts"
import { errorText, locationInError, shortenLine } from "../core/error-text.ts"
import { formatRef, type Ref, siblingRef } from "../core/ref.ts"
import { topicWords } from "../core/words.ts"
import { patchText } from "../render/patch.ts"
import type { Change, ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import type { LearnedFacts } from "../store/knowledge/conversations.ts"
import type { WorkedFile } from "../store/knowledge/files.ts"
import type { FixedFile, StoredFix } from "../store/knowledge/fixes.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import type { Topic, TurnWords } from "../store/knowledge/turns.ts"
import { linesOfConversation } from "./blame/lines-in.ts"
import { saysChange } from "./changes.ts"
import { decisionInNote, decisionsIn, mayBeDecisionRecord } from "./decisions/decisions.ts"
import { findReversals } from "./decisions/supersede.ts"
import { type Fix, type FixEdit, fixesIn, type Subagent } from "./fixes/fixes.ts"
import { LEARNER_VERSION } from "./outdated.ts"
import { fileNameOf, pathBelowAny, pathRootsOf, placeOf } from "./paths.ts"
import { testRunsIn } from "./test-runs/runs.ts"

const BATCH_SIZE = 16
const MAX_SUBAGENTS = 50
const MAX_TURN_CHARS = 20_000
const MAX_TURNS = 2_000
const MAX_TOPIC_WORDS = 80

type LearnOptions = {
  signal?: AbortSignal
  onProgress?: (learned: number) => void
}

/** Updates the knowledge: reads the conversations that changed since the last time, one by one. */
export async function learn(
  store: HistoryReader,
  knowledge: Knowledge,
  options: LearnOptions = {},
): Promise<{ learned: number; complete: boolean }> {
  let learned = 0
  knowledge.conversations.setLearnerVersion(LEARNER_VERSION)
  for (;;) {
    const token = knowledge.conversations.learnedToken()
    const feed = await store.changes(token, BATCH_SIZE)
    if (feed.rebuild) {
      knowledge.conversations.forgetConversations()
      continue
    }
    const facts: LearnedFacts[] = []
    for (const change of await withParents(store, knowledge, feed.changes)) {
      facts.push(await factsOf(store, change))
      await setImmediate() // lets an abort signal arrive
    }
    if (feed.token !== token && !knowledge.conversations.saveLearned(facts, token, feed.token)) continue
    learned += feed.changes.length
    if (feed.changes.length > 0) options.onProgress?.(learned)
    const complete = !feed.more
    if (complete || options.signal?.aborted) {
      knowledge.decisions.renewReversals(findReversals)
      return { learned, complete }
    }
  }
}

/**
 * Adds the parents of changed or removed subagents, because a parent's facts include its subagents' work. A parent from which
 * nothing was learned yet is in the feed itself.
 */
async function withParents(store: HistoryReader, knowledge: Knowledge, changes: Change[]): Promise<Change[]> {
  const changesByName = new Map(changes.map((change) => [change.conversation, change]))
  const add = (name: string, ref: Ref) => {
    if (!changesByName.has(name)) changesByName.set(name, { conversation: name, deleted: false, ref })
  }
  for (const { conversation, ref } of changes) {
    const row = ref && (await store.conversation(ref))
    const parent = row?.parent && siblingRef(row.ref, row.parent.id)
    const name = parent && knowledge.conversations.feedNameOf(parent)
    if (name !== undefined) add(name, parent!)
    const removed = knowledge.conversations.removedConversation(conversation, row?.ref)
    for (const { name, ref } of removed ? knowledge.conversations.possibleReporters(removed) : []) add(name, ref)
  }
  return [...changesByName.values()]
}

/** Learns a single conversation. Used to reproduce the knowledge of an earlier time. */
export async function learnConversation(
  store: HistoryReader,
  knowledge: Knowledge,
  name: string,
  ref: Ref,
): Promise<void> {
  const learned = await factsOf(store, { conversation: name, deleted: false, ref })
  knowledge.conversations.saveFacts(learned)
}

async function factsOf(store: HistoryReader, { conversation: name, ref }: Change): Promise<LearnedFacts> {
  const row = ref && (await store.conversation(ref))
  if (!row || row.kind === "dex") return { name, gone: true, ref: row?.ref }
  if (row.kind === "document") return documentFacts(store, name, row)
  if (row.ref.source === "dex_note") return noteFacts(store, name, row)
  const messages = (await store.messages(row.ref)).filter((message) => !message.superseded && !message.copied)
  const web_at = firstWebTime(messages)
  const roots = pathRootsOf(row)
  return {
    name,
    gone: false,
    ref: row.ref,
    row,
    folder: placeOf(row),
    web_at,
    worked: row.project === undefined ? [] : workedFiles(messages, roots),
    fixes: fixesIn(messages, await subagentsOf(store, row)).map((fix) => toStoredFix(fix, roots)),
    test_runs: row.project === undefined ? [] : testRunsIn(messages, roots),
    decisions: decisionsIn(row, messages),
    lines: row.project === undefined ? undefined : linesOfConversation(row, messages),
    turns: row.project === undefined || row.kind !== "person" ? undefined : turnsIn(messages),
    says_change: saysChange(messages),
  }
}

/** Learns only decisions from a document. */
async function documentFacts(store: HistoryReader, name: string, row: ConversationRow): Promise<LearnedFacts> {
  const decisions = mayBeDecisionRecord(row.ref.id) ? decisionsIn(row, await store.messages(row.ref)) : []
  return decisions.length === 0
    ? { name, gone: true, ref: row.ref }
    : { name, gone: false, ref: row.ref, row, worked: [], fixes: [], test_runs: [], decisions }
}

/** Learns nothing from an agent's note until the person confirms it, so that an unconfirmed note is never suggested unasked. */
async function noteFacts(store: HistoryReader, name: string, row: ConversationRow): Promise<LearnedFacts> {
  const decisions = decisionInNote(row, await store.messages(row.ref))
  return decisions.length === 0
    ? { name, gone: true, ref: row.ref }
    : { name, gone: false, ref: row.ref, row, worked: [], fixes: [], test_runs: [], decisions }
}

/**
 * Returns the subagents in the same project. Those of other projects are left out: such a project may become private at any time,
 * but the facts learned from it would stay.
 */
async function subagentsOf(store: HistoryReader, { ref, kind, project }: ConversationRow): Promise<Subagent[]> {
  if (kind === "subagent") return []
  const { rows } = await store.list({
    conversation: ref,
    kinds: ["subagent"],
    limit: MAX_SUBAGENTS,
    offset: 0,
    in_project: project,
    inside: project,
  })
  const subagents: Subagent[] = []
  for (const { ref, parent } of rows.filter((row) => row.project === project))
    subagents.push({
      id: formatRef(ref),
      call_id: parent?.call_id,
      messages: await store.messages(ref),
    })
  return subagents
}

function workedFiles(messages: StoredMessage[], roots: readonly string[]): WorkedFile[] {
  const files = new Map<string, WorkedFile>()
  for (const { number, at, effects, abandoned } of messages) {
    if (abandoned) continue
    for (const effect of effects) {
      const path = effect.type === "file" ? pathBelowAny(roots, effect.path) : undefined
      if (effect.type !== "file" || path === undefined) continue
      const file = files.get(path) ?? {
        path,
        edits: 0,
        reads: 0,
        mentions: 0,
        added: 0,
        removed: 0,
        first_number: number,
        last_number: number,
      }
      if (effect.action === "edited") file.edits++
      else if (effect.action === "read") file.reads++
      else file.mentions++
      file.added += effect.added ?? 0
      file.removed += effect.removed ?? 0
      file.last_number = number
      if (at !== undefined) file.at = at
      files.set(path, file)
    }
  }
  return [...files.values()]
}

/** The time of the first text from the web or from a remote tool. A message without a time counts as time 0. */
function firstWebTime(messages: readonly StoredMessage[]): number | undefined {
  const times = messages.flatMap((message) => (containsForeignText(message) ? [message.at ?? 0] : []))
  return times.length === 0 ? undefined : Math.min(...times)
}

/** Whether a message contains a page, or a remote tool's or a fetching command's output. */
export function containsForeignText({ parts, effects }: StoredMessage): boolean {
  return (
    parts.some(({ origin }) => origin === "web") ||
    effects.some((effect) => effect.type === "command" && printsRemoteText(effect.command))
  )
}

/** Matches programs that print other people's text, anywhere in the command line. */
const FETCH_PROGRAM = /(?<![\w.-])(?:curl|wget|aria2c|xh|httpie|lynx|w3m|e?links|ssh|nc|ncat|telnet|glab|hub)(?![\w.-])/
const HTTPIE = /(?:^|[;&|(`]|\$\()\s*https?\s+[^|;&\n]/
const REGISTRY_QUERY = /(?<![\w.-])(?:npm|pnpm|yarn|bun|pip3?|cargo|gem)\s+(?:view|info|show|search|v)\s/
/** Matches calls of `gh` that print issues, reviews and logs. Subcommands that only change something do not match. */
const GH_PRINTS_TEXT =
  /(?<![\w./-])gh\s+(?!(?:auth|config|alias|extension|completion|version)\b|\w+\s+(?:create|checkout|merge|ready|close|reopen|delete|edit|comment|lock|develop|clone|fork|rerun|cancel|upload)\b)/
const URL_HOST = /\bhttps?:\/\/(?:[^\s/"'@]*@)?(\[[^\]\s]*\]|[^\s/:"'?#]+)/g
const LOCAL_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\]|[\w-]+\.localhost)$/i

/** Whether a command may print a stranger's words. A server on the same machine belongs to the project. */
export function printsRemoteText(command: string): boolean {
  if (REGISTRY_QUERY.test(command) || GH_PRINTS_TEXT.test(command)) return true
  if (!FETCH_PROGRAM.test(command) && !HTTPIE.test(command)) return false
  const hosts = [...command.matchAll(URL_HOST)].map(([, host]) => host!)
  return hosts.length === 0 || !hosts.every((host) => LOCAL_HOST.test(host))
}

// Converts a fix to its stored form, so that it can be found and shown without reading its conversation again.

const MAX_LINES = 10
const MAX_LINE_LENGTH = 300
const MAX_COMMAND_LENGTH = 1000
const MAX_FILES = 40
const MAX_EDIT_LINES = 40

export function toStoredFix(fix: Fix, roots: readonly string[]): StoredFix & { words: string } {
  const edits = fix.edits.map((edit) => withProjectPaths(edit, roots))
  const lines = fix.lines.slice(0, MAX_LINES).map((line) => shortenLine(line, MAX_LINE_LENGTH))
  const hunks = orderHunks(edits, lines)
  return {
    command: fix.command.slice(0, MAX_COMMAND_LENGTH),
    lines,
    failed_number: fix.failed_at,
    fixed_number: fix.fixed_at,
    at: fix.at,
    files: filesOf(edits).slice(0, MAX_FILES),
    edits: edits.length,
    edit: firstLines(hunks)
      .map((line) => line.slice(0, MAX_LINE_LENGTH))
      .join("\n"),
    edit_lines_left_out: Math.max(0, lineCount(hunks) - MAX_EDIT_LINES),
    words: wordsOf(lines, fix.command).join(" "),
  }
}

/** Formats only as many lines as are stored, because an edit may contain thousands of lines. */
function firstLines(hunks: Hunk[]): string[] {
  const first: Hunk[] = []
  for (let i = 0, lines = 0; i < hunks.length && lines < MAX_EDIT_LINES; i++) {
    const hunk = hunks[i]!
    first.push({ ...hunk, lines: hunk.lines.slice(0, MAX_EDIT_LINES) })
    lines += hunk.lines.length + 1
  }
  return patchText(first).split("\n").slice(0, MAX_EDIT_LINES)
}

/** The number of lines that `patchText` would write. */
function lineCount(hunks: Hunk[]): number {
  return hunks.reduce((sum, { path, lines }, i) => sum + (path === hunks[i - 1]?.path ? 1 : 3) + lines.length, 0)
}

/** The search words of a fix: the words and names of the error, and the command. */
function wordsOf(lines: string[], command: string): string[] {
  const errorWords = lines.flatMap((line) => {
    const { words, particulars } = errorText(line)
    return [...words, ...particulars]
  })
  return [...new Set([...errorWords, ...command.slice(0, MAX_LINE_LENGTH).split(/\s+/)])]
}

/** Makes an edit's paths relative to the project. */
function withProjectPaths(edit: FixEdit, roots: readonly string[]): FixEdit {
  const toProjectPath = (path: string) => pathBelowAny(roots, path) ?? path
  return {
    ...edit,
    path: toProjectPath(edit.path),
    hunks: edit.hunks.map((hunk) => ({ ...hunk, path: toProjectPath(hunk.path) })),
  }
}

function filesOf(edits: FixEdit[]): FixedFile[] {
  const sums = new Map<string, FixedFile>()
  for (const { path, added, removed } of edits) {
    const sum = sums.get(path) ?? { path, added: 0, removed: 0 }
    sums.set(path, { path, added: sum.added + added, removed: sum.removed + removed })
  }
  return [...sums.values()]
}

/** Groups changes by file, in the order of the first edit. Within a file, changes at the position of an error come first. */
function orderHunks(edits: FixEdit[], lines: string[]): Hunk[] {
  const errorPlaces = lines.flatMap((line) => locationInError(line) ?? [])
  const isAtError = ({ path, old_start, old_lines }: Hunk) =>
    errorPlaces.some(
      ({ file, line }) =>
        fileNameOf(file) === fileNameOf(path) && line >= old_start && line < old_start + Math.max(1, old_lines),
    )
  return [...Map.groupBy(edits, ({ path }) => path).values()]
    .map((editsOfFile) => editsOfFile.flatMap(({ hunks }) => hunks))
    .flatMap((hunks) => [...hunks.filter(isAtError), ...hunks.filter((hunk) => !isAtError(hunk))])
}

/**
 * Divides a conversation into turns: what was said from one prompt to the next. Tool calls and their output do not count, because
 * they would find whatever was printed instead of what was talked about. Returns the turns, and the words that occur in it most often.
 */
function turnsIn(messages: readonly StoredMessage[]): { turns: TurnWords[]; topic: Topic } {
  const turns: { number: number; text: string }[] = []
  for (const { number, parts, abandoned } of messages) {
    if (abandoned) continue
    const spoken = parts.filter(({ type, origin }) => type === "text" && (origin === "person" || origin === "agent"))
    if (spoken.length === 0) continue
    if (turns.length === 0 || spoken.some(({ origin }) => origin === "person")) turns.push({ number, text: "" })
    const turn = turns.at(-1)!
    turn.text = `${turn.text}\n${spoken.map(({ text }) => text).join("\n")}`.slice(0, MAX_TURN_CHARS)
  }
  const saved = turns.slice(-MAX_TURNS).map(({ number, text }) => ({ number, words: topicWords(text) }))
  return { turns: saved, topic: mostFrequent(saved.flatMap(({ words }) => words)) }
}

function mostFrequent(words: readonly string[]): Topic {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MAX_TOPIC_WORDS)
}
