import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { loadSettings } from "../../config/load.ts"
import { DexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import { conversationRefOf, formatRef, isSameConversation, type Ref, siblingRef } from "../../core/ref.ts"
import { many } from "../../render/words.ts"
import { parseQuery, type Query } from "../../search/query.ts"
import { projectsHiddenFrom } from "../../search/scope.ts"
import { searchHistory } from "../../search/search.ts"
import type { CommitRow, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import { openIndex, type SearchIndex } from "../../store/index/search-index.ts"
import { openScratch } from "../../store/sqlite/scratch.ts"
import type { Dex } from "../context.ts"
import type { EvalInput } from "./eval.ts"

/** The maximum number of messages to search. Measuring more would take too long. */
const MAX_MESSAGES = 200_000
const MAX_COMMITS = 20_000
const MIN_QUESTIONS = 10
/** The number of results that a search shows by default. */
const RESULTS_SHOWN = 10

export async function run(dex: Dex, input: EvalInput) {
  const started = Date.now()
  if (!input.mine)
    throw new DexError("usage", "dex eval --mine searches for your own commits and reports how many it finds.")
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const store = await dex.store()
  const { refs, searched } = await newestConversations(store, MAX_MESSAGES, dex.project)
  const commits = await store.commits({ limit: MAX_COMMITS, inside: dex.project })
  const { questions, left_out } = questionsOf(commits, refs, input.limit)
  const asked = { commits: commits.length, questions: questions.length, left_out }
  if (questions.length < MIN_QUESTIONS) return { asked, notes: [tooFewNote(asked)], duration_ms: Date.now() - started }
  const { folder, close } = openScratch(dex.home.dir)
  process.once("exit", close)
  const index = openIndex(join(folder, "index.db"))
  try {
    const maskedHistory = maskedStore(store, commits, refs, createStep(dex, "indexing", refs.size))
    await index.follow(maskedHistory)
    const results = await measure(dex, maskedHistory, index, questions)
    return { asked, searched, ...results, notes: await limitsOf(dex, searched), duration_ms: Date.now() - started }
  } finally {
    index.close()
    close()
    process.off("exit", close)
  }
}

/** The newest conversations, with about `maxMessages` messages at most, and how much of the history they are. */
export async function newestConversations(store: HistoryReader, maxMessages: number, inside: string) {
  const { rows } = await store.list({ limit: 1_000_000, offset: 0, inside })
  const refs = new Set<string>()
  const searched = { conversations: 0, messages: 0, of_conversations: rows.length, of_messages: 0 }
  for (const row of rows) {
    const ownMessages = row.message_count - row.copied_count
    searched.of_messages += ownMessages
    if (searched.conversations > 0 && searched.of_messages > maxMessages) continue
    refs.add(formatRef(row.ref))
    searched.conversations++
    searched.messages += ownMessages
  }
  return { refs, searched }
}

/** A question: the subject of a commit, and the conversations that made a commit with this subject. */
type CommitQuestion = { subject: string; gold: Ref[] }

/**
 * A subject needs at least this many words to become a question. Shorter ones such as "fmt" and "fix lint" are not specific
 * enough.
 */
const MIN_WORDS = 4
const MERGE_OR_WIP =
  /^(?:wip\b|fixup!|squash!|amend!|merge (?:branch|remote|pull request|tag|commit)|merge \S+ (?:into|from) )/i

/** Makes questions from these commits, newest first, about the conversations in `searchedRefs`. */
export function questionsOf(commits: CommitRow[], searchedRefs: ReadonlySet<string>, maxQuestions: number) {
  const left_out = { too_short: 0, merge_or_wip: 0, repeated: 0, out_of_reach: 0, beyond_limit: 0 }
  const questions: CommitQuestion[] = []
  const normalisedSubject = ({ subject }: CommitRow) => subject.toLowerCase().split(/\s+/).join(" ").trim()
  for (const group of Map.groupBy(commits, normalisedSubject).values()) {
    const { subject } = group[0]!
    left_out.repeated += group.length - 1
    const gold = group.map(({ ref }) => conversationRefOf(ref)).filter((ref) => searchedRefs.has(formatRef(ref)))
    if (subject.trim().split(/\s+/).length < MIN_WORDS) left_out.too_short++
    else if (MERGE_OR_WIP.test(subject)) left_out.merge_or_wip++
    else if (gold.length === 0) left_out.out_of_reach++
    else if (questions.length >= maxQuestions) left_out.beyond_limit++
    else questions.push({ subject, gold })
  }
  return { questions, left_out }
}

/**
 * A query for the words of a subject. Quotation marks, colons and dashes have no special meaning in it.
 */
export function queryOf(subject: string): Query {
  return parseQuery(subject.replaceAll('"', " ").replace(/(^|\s)-+(?=\S)/g, "$1"), () => false)
}

/**
 * Returns a function to call before each step. It reports the progress, and yields to the event loop: SQLite calls are
 * synchronous, so nothing else would handle signals or draw the progress bar.
 */
function createStep(dex: Dex, phase: "indexing" | "asking", total: number): () => Promise<void> {
  let done = 0
  return async () => {
    dex.onProgress?.({ phase, done: ++done, total, bytes: done, bytesTotal: total })
    await setImmediate()
    if (dex.signal?.aborted) throw new DexError("cancelled", "Stopped. Nothing was stored or changed.")
  }
}

async function measure(dex: Dex, store: HistoryReader, index: SearchIndex, questions: CommitQuestion[]) {
  const reportQuestion = createStep(dex, "asking", questions.length)
  const search = async (subject: string, excludedConversations: Ref[]) => {
    const scope = {
      inside: dex.project,
      excludedConversations,
      by: "conversation" as const,
      limit: RESULTS_SHOWN,
      offset: 0,
    }
    return (await searchHistory(store, index, { ...scope, query: queryOf(subject) })).hits
  }
  const answers: { place: number; silent: boolean; silentWithoutAnswer: boolean }[] = []
  for (const { subject, gold } of questions) {
    await reportQuestion()
    const hits = await search(subject, [])
    const position = hits.findIndex(({ row }) => gold.some((ref) => isSameConversation(ref, row.ref)))
    const hitsWithoutAnswer = await search(subject, await relativesOf(store, gold))
    answers.push({
      place: position < 0 ? Infinity : position + 1,
      silent: hits.length === 0,
      silentWithoutAnswer: hitsWithoutAnswer.length === 0,
    })
  }
  const n = answers.length
  const mean = (measureOf: (answer: (typeof answers)[number]) => number | boolean) =>
    answers.reduce((sum, answer) => sum + Number(measureOf(answer)), 0) / n
  const figures = {
    n,
    hit_at_1: mean(({ place }) => place === 1),
    hit_at_5: mean(({ place }) => place <= 5),
    mrr: mean(({ place }) => 1 / place),
    silent: mean(({ silent }) => silent),
  }
  const silent_without_answer = mean(({ silentWithoutAnswer }) => silentWithoutAnswer)
  return { figures, hit_at_5_interval: confidenceInterval(figures.hit_at_5, n), silent_without_answer }
}

/**
 * The conversations with the answer, and all relatives that may contain the same words: parents, subagents and forks.
 */
async function relativesOf(store: HistoryReader, gold: Ref[]): Promise<Ref[]> {
  const rows = await Promise.all(gold.map((ref) => store.conversation(ref)))
  return store.family([...gold, ...rows.flatMap((row) => (row?.parent ? siblingRef(row.ref, row.parent.id) : []))])
}

/** Wilson's 95 % confidence interval of a share of n questions. */
export function confidenceInterval(share: number, n: number): { low: number; high: number } {
  const z = 1.96
  const middle = share + (z * z) / (2 * n)
  const margin = z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n))
  const scale = 1 + (z * z) / n
  return { low: Math.max(0, (middle - margin) / scale), high: Math.min(1, (middle + margin) / scale) }
}

async function limitsOf(dex: Dex, searched: { conversations: number; of_conversations: number }): Promise<string[]> {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.place })
  const hidden = projectsHiddenFrom(await (await dex.store()).projects(), dex.project, dex.machine.platform).length
  return [
    "Most subjects were written by the agent that did the work, so they share its words: questions in your own words find less.",
    searched.conversations < searched.of_conversations &&
      `Only the newest ${grouped(searched.conversations)} of ${grouped(searched.of_conversations)} conversations were searched (about ${grouped(MAX_MESSAGES)} messages), and only for their commits.`,
    (settings["embed.provider"] !== "none" || settings["search.rerank"] !== "off") &&
      "Measured by words only: no text was sent to the servers that your searches also use.",
    hidden > 0 && `Private projects and their commits were left out (${grouped(hidden)}).`,
  ].filter((note) => note !== false)
}

function tooFewNote({ commits, questions }: { commits: number; questions: number }): string {
  const counts = `Of ${many(commits, "commit")} made in your conversations, ${grouped(questions)} can be searched for`
  return `${counts}; a measurement needs ${MIN_QUESTIONS}. Only a \`git commit\` that an agent ran counts, with a subject of four words or more. Let your agents commit, run \`dex sync\`, and try again later.`
}

/**
 * The history without anything that reveals a commit: calls that commit, show the log or use the forge, their results, and every
 * verbatim occurrence of a subject. A subject that still finds its conversation does so because of the work itself. Contains only
 * the conversations in `includedRefs`. Calls `onConversation` before it first reads the messages of a conversation.
 */
export function maskedStore(
  store: HistoryReader,
  commits: CommitRow[],
  includedRefs: Set<string>,
  onConversation = async () => {},
) {
  const mask = subjectMask(commits.map(({ subject }) => subject))
  const revealing = new Map<string, ReadonlySet<string>>()
  const conversation = async (ref: Ref) => {
    const row = await store.conversation(ref)
    // A title made from a commit is the shortened subject.
    const title = row?.title?.from === "commit" ? undefined : row?.title
    return row && { ...row, title: title && { ...title, text: mask(title.text) } }
  }
  return {
    ...store,
    changes: async (after, limit) => {
      const feed = await store.changes(after, limit)
      return {
        ...feed,
        changes: feed.changes.filter(({ ref }) => ref !== undefined && includedRefs.has(formatRef(ref))),
      }
    },
    conversation,
    titles: async (refs) => (await Promise.all(refs.map(conversation))).map((row) => row?.title?.text ?? ""),
    messages: async (ref, numbers) => {
      // A result may come many messages after its call, so calls are collected from all messages.
      const name = formatRef(ref)
      if (!revealing.has(name)) await onConversation()
      const calls = revealing.get(name) ?? revealingCalls(await store.messages(ref))
      revealing.set(name, calls)
      return (await store.messages(ref, numbers)).map((message) => maskMessage(message, calls, mask))
    },
  } satisfies HistoryReader
}

const REVEALING_COMMAND =
  /\bgit\b[^|;&\n]*\b(?:commit|log|show|reflog|rebase|cherry-pick|notes)\b|\bgh\s+(?:pr|api|issue|release)\b/
const FORGE_TOOL = /^mcp_+git/i
const SHELL_TOOL = /bash|shell|exec|terminal|command/i

function revealsCommit({ tool, text }: { tool: string; text: string }): boolean {
  return FORGE_TOOL.test(tool) || (/\bg(?:it|h)\b/.test(text) && REVEALING_COMMAND.test(commandIn(tool, text)))
}

function commandIn(tool: string, input: string): string {
  try {
    const fields: { command?: unknown; cmd?: unknown } | null = JSON.parse(input)
    const command = fields?.command ?? fields?.cmd
    if (Array.isArray(command)) return command.join(" ")
    if (typeof command === "string") return command
  } catch {
    // The input is not JSON: it is the plain text of a freeform tool.
  }
  return SHELL_TOOL.test(tool) ? input : ""
}

function revealingCalls(messages: StoredMessage[]): Set<string> {
  const calls = messages.flatMap(({ parts, effects }) => [
    ...parts.filter((part) => part.type === "tool_call").filter(revealsCommit),
    ...effects.filter((effect) => effect.type === "commit"),
  ])
  return new Set(calls.flatMap(({ call_id }) => call_id ?? []))
}

function maskMessage(message: StoredMessage, calls: ReadonlySet<string>, mask: Mask): StoredMessage {
  const parts = message.parts.map((part) => {
    const id = part.type === "tool_call" || part.type === "tool_result" ? part.call_id : undefined
    const isRevealing = (part.type === "tool_call" && revealsCommit(part)) || (id !== undefined && calls.has(id))
    return { ...part, text: isRevealing ? "" : mask(part.text) }
  })
  return { ...message, parts }
}

type Mask = (text: string) => string

/**
 * Limits for the text that is masked, in characters. Shorter subjects are not masked, because they may be ordinary words. Only
 * the beginning of a longer subject is masked, to keep the pattern small.
 */
const MIN_CHARS = 8
const MAX_CHARS = 300

/** Removes every subject from a text. */
export function subjectMask(subjects: string[]): Mask {
  const forms = [...new Set(subjects.flatMap(formsOf))].filter((form) => form.length >= MIN_CHARS)
  // Longest first, so that a shorter subject does not break a longer one that contains it.
  forms.sort((a, b) => b.length - a.length)
  const anySubject = new RegExp(forms.map((form) => form.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g")
  return (text) => text.replaceAll(anySubject, "")
}

/**
 * Returns the subject with and without the number that a forge appends, each in plain text and as it appears in a tool's JSON.
 */
function formsOf(text: string): string[] {
  const subject = text.slice(0, MAX_CHARS)
  const plain = [subject, subject.replace(/ \(#\d+\)$/, "")]
  return [...plain, ...plain.map((form) => JSON.stringify(form).slice(1, -1))]
}
