import { parseArgs } from "node:util"
import { commandParts } from "../src/core/command.ts"
import type { Part } from "../src/core/conversation.ts"
import { namesError } from "../src/core/error-text.ts"
import { estimateTokens } from "../src/core/tokens.ts"
import { topicWords } from "../src/core/words.ts"
import { fileNameOf, pathBelowAny, pathRootsOf } from "../src/learn/paths.ts"
import { answersOf } from "../src/render/brief-calls.ts"
import { workOf } from "../src/render/brief-work.ts"
import type { ConversationRow, StoredMessage } from "../src/store/history/store.ts"
import { linesAfterCompaction } from "../src/suggest/compaction.ts"
import { openGenuineHome } from "./genuine-home.ts"
import { Absent, halfOf } from "./set.ts"

// What an agent had to look up again after a compaction, and how much of it stands in what dex would have given back.
//
//   npm run eval:compaction [-- --half build|held] [--json]
//
// The rules, written before anything gave a text:
//
// - A compaction is a summary in the middle of one of the genuine conversations. Before it: every message of that conversation up to
//   it. After it: the messages up to the next compaction, or to the end. A conversation is wholly in one half, by the hash of its id.
// - Looked up again is, once for each compaction:
//   - a file that was read or edited before, and is read after it before it is edited: with the agent's tool, or with cat, head, tail,
//     sed, nl, less, bat or awk in a shell;
//   - a command that was run before and is run again with the same programs and arguments, whatever its pipes; for one that only looks
//     (git status, ls, grep) the same line. What moves work on (git add, commit, push and their like) is not looked up;
//   - a question that was answered before and is asked again: at least 60 % of the content words are the same.
// - It is given if the text names it together with what was learnt, within one entry: a line, and the lines up to the next blank line or
//   the next known file, at most 600 characters.
//   - A file: by its path, or by its name if no other known file has it. Learnt is the true number of lines changed in it (+3 −1), or
//     a name of at least 4 characters that occurs in the changed lines, or in what was read of it, and not in its path. `names only`
//     counts those that are named without that. `to the point` counts those for which such a name also stands in what the agent read
//     again.
//   - A command: every one of its programs, and how its last run before ended, truly: failed, or not. A command that only looks needs a
//     line of at least 12 characters that it printed.
//   - A question: at least half of the content words of the answer.
// - The agent's own summary is judged by the same rules. It costs dex nothing, and is about ten times as long.

type Kind = "file" | "command" | "question"
/** Something that was looked up again. The verdict on a text. */
type Again = { kind: Kind; name: string; judge(text: string): Verdict }
type Verdict = { isNamed: boolean; isGiven: boolean; isToThePoint?: boolean }
type Compaction = {
  row: ConversationRow
  half: "build" | "held"
  before: StoredMessage[]
  summary: string
  again: Again[]
  /** Commands that were repeated only after an edit, when their outcome may differ. They are included in `again`. */
  rerun: number
}

const NAME = /[A-Za-z_$][\w$]*/g
const SHOWING_PROGRAM = /(?:^|[;&|]\s*)(?:cat|head|tail|sed|nl|less|bat|awk)\s[^;&|]*/g
const HANDS_OVER =
  /^(?:git (?:add|am|apply|branch|checkout|cherry-pick|clean|commit|config|fetch|merge|mv|pull|push|rebase|reset|restore|revert|rm|stash|switch|tag|worktree)|gh \w+ (?:create|edit|merge|close|comment|ready))/
const FAILED = /\b(?:fail(?:s|ed|ing|ure)?|errors?|broken|exit (?:code )?[1-9])\b|✗|✖/i
const PASSED =
  /\b(?:pass(?:es|ed|ing)?|succe\w+|clean|green|works?|0 (?:issues|errors|failures)|no (?:issues|errors|failures)|ok)\b|✓|✔|✅/i
const MAX_ENTRY_CHARS = 600
const MIN_NAME_CHARS = 4
const MIN_LINE_CHARS = 12
const MIN_SAME_QUESTION = 0.6
const MIN_ANSWER = 0.5

const { values } = parseArgs({ options: { half: { type: "string" }, json: { type: "boolean" } } })
const halves = (["build", "held"] as const).filter((half) => values.half === undefined || values.half === half)

try {
  const home = await openGenuineHome()
  const compactions: Compaction[] = []
  const { rows } = await home.store.list({ limit: 100_000, offset: 0, kinds: ["person", "subagent", "automation"] })
  for (const row of rows) compactions.push(...compactionsIn(row, await home.store.messages(row.ref)))
  home.close()
  const figures = Object.fromEntries(
    halves.map((half) => {
      const own = compactions.filter((one) => one.half === half)
      const figures = {
        dex: figuresOf(own, givenBack),
        "the agent's summary": figuresOf(own, ({ summary }) => summary),
        both: figuresOf(own, (one) => `${one.summary}\n\n${givenBack(one)}`),
      }
      return [half, { counts: countsOf(own), figures }]
    }),
  )
  if (values.json) console.log(JSON.stringify(figures))
  else
    for (const [half, { counts, figures: table }] of Object.entries(figures)) {
      console.log(half, counts)
      console.table(table)
    }
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.error(`NOT RUN: ${error.message}. Set DEX_CORPUS_DIR to the folder that contains it.`)
  process.exitCode = 1
}

function givenBack({ row, before }: Compaction): string {
  return linesAfterCompaction(row, before).join("\n")
}

function countsOf(compactions: readonly Compaction[]) {
  const again = compactions.flatMap((one) => one.again)
  const count = (kind: Kind) => again.filter((one) => one.kind === kind).length
  return {
    compactions: compactions.length,
    files: count("file"),
    commands: count("command"),
    "of these after an edit": compactions.reduce((sum, { rerun }) => sum + rerun, 0),
    questions: count("question"),
  }
}

function figuresOf(compactions: readonly Compaction[], textOf: (one: Compaction) => string) {
  const texts = compactions.map((one) => ({ text: textOf(one), again: one.again }))
  const verdicts = texts.flatMap(({ text, again }) => again.map((one) => ({ kind: one.kind, ...one.judge(text) })))
  const share = (part: readonly unknown[], all: readonly unknown[]) =>
    all.length === 0 ? "none" : `${part.length} of ${all.length} (${Math.round((100 * part.length) / all.length)} %)`
  const of = (kind: Kind) => verdicts.filter((one) => one.kind === kind)
  const tokens = texts.map(({ text }) => estimateTokens(text)).sort((a, b) => a - b)
  return {
    given: share(
      verdicts.filter(({ isGiven }) => isGiven),
      verdicts,
    ),
    files: share(
      of("file").filter(({ isGiven }) => isGiven),
      of("file"),
    ),
    "names only": of("file").filter(({ isNamed, isGiven }) => isNamed && !isGiven).length,
    "to the point": of("file").filter(({ isToThePoint }) => isToThePoint).length,
    commands: share(
      of("command").filter(({ isGiven }) => isGiven),
      of("command"),
    ),
    questions: share(
      of("question").filter(({ isGiven }) => isGiven),
      of("question"),
    ),
    "tokens, median": tokens[tokens.length >> 1],
    "tokens, most": tokens.at(-1),
  }
}

function compactionsIn(row: ConversationRow, stored: readonly StoredMessage[]): Compaction[] {
  const messages = stored.filter(({ superseded, copied, abandoned }) => !superseded && !copied && !abandoned)
  const summaries = messages.flatMap(({ parts }, at) =>
    parts.flatMap((part) => (part.type === "summary" ? [{ at, text: part.text }] : [])),
  )
  const half = halfOf(row.ref.id) === "held" ? "held" : "build"
  return summaries.map(({ at, text }, i) => {
    const before = messages.slice(0, at)
    const after = messages.slice(at + 1, summaries[i + 1]?.at)
    const commands = commandsAgain(before, after)
    return {
      row,
      half,
      before,
      summary: text,
      again: [
        ...filesAgain(before, after, pathRootsOf(row)),
        ...commands.map(({ again }) => again),
        ...questionsAgain(before, after),
      ],
      rerun: commands.filter(({ isAfterEdit }) => isAfterEdit).length,
    }
  })
}

type Result = Extract<Part, { type: "tool_result" }>

function resultsIn(messages: readonly StoredMessage[]): Map<string, Result> {
  const results = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" && part.call_id !== undefined ? [part] : [])),
  )
  return new Map(results.map((part) => [part.call_id!, part]))
}

/** What was done with a file. `text` is what was read, or the changed lines. */
type Use = { path: string; isEdit: boolean; text: string; added: number; removed: number }

function usesIn(messages: readonly StoredMessage[], roots: readonly string[], known: ReadonlySet<string>): Use[] {
  const results = resultsIn(messages)
  const pathOf = (path: string) => pathBelowAny(roots, path) ?? path
  return messages.flatMap(({ effects }) =>
    effects.flatMap((effect): Use[] => {
      const result = effect.type === "file" || effect.type === "command" ? results.get(effect.call_id ?? "") : undefined
      if (effect.type === "file" && effect.action !== "mentioned") {
        const path = pathOf(effect.path)
        const isEdit = effect.action === "edited"
        const changed = (result?.hunks ?? []).filter((hunk) => pathOf(hunk.path) === path).flatMap(({ lines }) => lines)
        const text = isEdit ? changed.filter((line) => /^[+-]/.test(line)).join("\n") : (result?.text ?? "")
        return [{ path, isEdit, text, added: effect.added ?? 0, removed: effect.removed ?? 0 }]
      }
      if (effect.type !== "command") return []
      const shown = (effect.command.match(SHOWING_PROGRAM) ?? []).join(" ").split(/[\s'"]+/)
      return [...new Set(shown.map(pathOf))]
        .filter((path) => known.has(path))
        .map((path) => ({ path, isEdit: false, text: result?.text ?? "", added: 0, removed: 0 }))
    }),
  )
}

function filesAgain(before: readonly StoredMessage[], after: readonly StoredMessage[], roots: string[]): Again[] {
  const known = new Set(usesIn(before, roots, new Set()).map(({ path }) => path))
  const earlier = Map.groupBy(usesIn(before, roots, known), ({ path }) => path)
  const later = Map.groupBy(usesIn(after, roots, known), ({ path }) => path)
  const names = Map.groupBy(known, fileNameOf)
  return [...later].flatMap(([path, uses]): Again[] => {
    const learnt = earlier.get(path)
    if (learnt === undefined || uses[0]!.isEdit) return []
    const name = fileNameOf(path)
    const isOnly = names.get(name)?.length === 1
    const learntNames = namesIn(learnt.map(({ text }) => text).join("\n"), path)
    const againNames = namesIn(uses[0]!.text, path)
    const [added, removed] = [sum(learnt.map((use) => use.added)), sum(learnt.map((use) => use.removed))]
    const changed = new RegExp(`\\+${added}\\b.{0,3}[-−]${removed}\\b`)
    const judge = (text: string): Verdict => {
      const entries = entriesNaming(text, isOnly ? name : path, [...known])
      const told = entries.flatMap((entry) => [...namesIn(entry, path)].filter((one) => learntNames.has(one)))
      const isCounted = added + removed > 0 && entries.some((entry) => changed.test(entry))
      return {
        isNamed: entries.length > 0,
        isGiven: isCounted || told.length > 0,
        isToThePoint: told.some((one) => againNames.has(one)),
      }
    }
    return [{ kind: "file", name: path, judge }]
  })
}

function namesIn(text: string, path: string): Set<string> {
  const names = (text.match(NAME) ?? []).filter((name) => name.length >= MIN_NAME_CHARS && looksLikeCode(name))
  return new Set(names.filter((name) => !path.includes(name)))
}

/** Plain words such as "error" occur in every file, so they do not show that something was learnt. */
function looksLikeCode(name: string): boolean {
  return /[a-z][A-Z]|_|\d|^[A-Z]/.test(name)
}

/** The entries of a text that name a file: its line, and what follows it. */
function entriesNaming(text: string, name: string, known: readonly string[]): string[] {
  const lines = text.split("\n")
  const isOther = (line: string) => known.some((path) => !path.endsWith(name) && line.includes(fileNameOf(path)))
  return lines.flatMap((line, i) => {
    if (!line.includes(name)) return []
    const rest = lines.slice(i + 1)
    const end = rest.findIndex((next) => next.trim() === "" || isOther(next))
    return [[line, ...rest.slice(0, end === -1 ? undefined : end)].join("\n").slice(0, MAX_ENTRY_CHARS)]
  })
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}

type Ran = { key: string; kinds: string[]; hasFailed: boolean; printed: string[]; isAfterEdit: boolean }

function runsIn(messages: readonly StoredMessage[]): Ran[] {
  const results = resultsIn(messages)
  let isAfterEdit = false
  return messages.flatMap(({ effects }) =>
    effects.flatMap((effect): Ran[] => {
      if (effect.type === "file" && effect.action === "edited") isAfterEdit = true
      if (effect.type !== "command") return []
      const line = effect.command.replace(/\s+/g, " ").trim()
      const parts = commandParts(effect.command).parts.filter(({ kind }) => !HANDS_OVER.test(kind))
      const isOnlyActing = parts.length === 0 && commandParts(effect.command).parts.length > 0
      if (isOnlyActing || (parts.length === 0 && line.match(SHOWING_PROGRAM))) return []
      const output = results.get(effect.call_id ?? "")?.text ?? effect.error ?? ""
      return [
        {
          key: parts.length === 0 ? line : parts.map(({ kind, args }) => [kind, ...args].join(" ")).join(" && "),
          kinds: [...new Set(parts.map(({ kind }) => kind))],
          hasFailed: effect.failed === true || namesError(output),
          printed: output.split("\n").map((one) => one.trim()),
          isAfterEdit,
        },
      ]
    }),
  )
}

function commandsAgain(
  before: readonly StoredMessage[],
  after: readonly StoredMessage[],
): { again: Again; isAfterEdit: boolean }[] {
  const known = new Map(runsIn(before).map((run) => [run.key, run]))
  const repeated = new Map<string, Ran>()
  for (const run of runsIn(after)) if (known.has(run.key) && !repeated.has(run.key)) repeated.set(run.key, run)
  return [...repeated.values()].map(({ key, isAfterEdit }) => {
    const { kinds, hasFailed, printed } = known.get(key)!
    const judge = (text: string): Verdict => {
      const lines = text.split("\n")
      const naming = kinds.map((kind) => lines.filter((line) => line.includes(kind)))
      const isTrue = (line: string) => (hasFailed ? FAILED.test(line) : PASSED.test(line) && !FAILED.test(line))
      const shown = printed.some((line) => line.length >= MIN_LINE_CHARS && text.includes(line))
      return {
        isNamed: naming.length > 0 && naming.every((found) => found.length > 0),
        isGiven: kinds.length === 0 ? shown : naming.every((found) => found.some(isTrue)),
      }
    }
    return { again: { kind: "command", name: key, judge }, isAfterEdit }
  })
}

function questionsAgain(before: readonly StoredMessage[], after: readonly StoredMessage[]): Again[] {
  const answered = answersOf(workOf([...before], []).calls)
  const asked = answersOf(workOf([...after], []).calls)
  return asked.flatMap(({ question }): Again[] => {
    const words = new Set(topicWords(question ?? ""))
    const earlier = answered.findLast((one) => alike(words, new Set(topicWords(one.question ?? ""))))
    if (earlier === undefined) return []
    const answer = new Set(topicWords(earlier.answer))
    const judge = (text: string): Verdict => {
      const said = new Set(topicWords(text))
      const share = [...answer].filter((word) => said.has(word)).length / Math.max(1, answer.size)
      return { isNamed: share > 0, isGiven: share >= MIN_ANSWER }
    }
    return [{ kind: "question", name: question ?? "", judge }]
  })
}

function alike(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const shared = [...one].filter((word) => other.has(word)).length
  return one.size > 0 && shared / (one.size + other.size - shared) >= MIN_SAME_QUESTION
}
