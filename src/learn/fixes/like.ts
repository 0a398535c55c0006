import { commandParts } from "../../core/command.ts"
import {
  type ErrorText,
  errorLines,
  errorSimilarity,
  errorText,
  isInformative,
  mayBeSimilar,
} from "../../core/error-text.ts"
import type { KnownFix } from "../../store/knowledge/fixes.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { isFixableCommand } from "./fixes.ts"

/** A fix that matches the question. `error` is the most similar line of its output. */
export type FoundFix = KnownFix & { error: string; likeness: number }

export type FixQuery = {
  /** An error's text, or the command that failed. */
  query: string
  /** The command that printed the error. If omitted, a single line may be a command. */
  ran?: string
  /** The current project. Fixes from here rank above equally good fixes from elsewhere. */
  inside: string
  project?: string
  /** Searches only `inside`. */
  here?: boolean
  /** Projects to exclude. */
  except?: string[]
}

export type FoundFixes = {
  /** The fixes, best first. */
  solved: FoundFix[]
  unsolved: FoundFix[]
}

/** The most fixes that are compared line by line: those with the best matching words. */
const MAX_COMPARED = 200
const MAX_QUERY_LINES = 10
/** The least similarity of a result. Below it, two errors share little more than common words. */
const MIN_LIKENESS = 0.6
/** The factor for further lines of the question. The most informative line counts fully. */
const FURTHER_LINE = 0.9
const HERE = 0.1
/** The deduction for each edit after the first. A single edit was the fix; of forty, any may have been. */
const EACH_EDIT = 0.01

/** Finds what fixed an error, or made a command pass. */
export function findFixes(knowledge: Knowledge, wanted: FixQuery): FoundFixes {
  const { query, ran, inside, project, here, except } = wanted
  if (ran !== undefined && !isFixableCommand(ran)) return { solved: [], unsolved: [] }
  const question = questionOf(query, ran === undefined)
  const known = knowledge.fixes.fixesWithWords(question.words, {
    project: here ? inside : project,
    exactly: here,
    except,
    limit: MAX_COMPARED,
  })
  const found = known.flatMap((fix) => matched(fix, question))
  const score = ({ likeness, project, edits }: FoundFix) =>
    likeness + (project === inside ? HERE : 0) - Math.min(HERE, EACH_EDIT * edits)
  found.sort((a, b) => score(b) - score(a) || (b.at ?? 0) - (a.at ?? 0) || a.failed_number - b.failed_number)
  return {
    solved: found.filter(({ fixed_number }) => fixed_number !== undefined),
    unsolved: found.filter(({ fixed_number }) => fixed_number === undefined),
  }
}

type Question = {
  lines: ErrorText[]
  /** The query as a command, if it may be one. */
  command?: string
  words: string[]
}

function questionOf(query: string, mayBeCommand: boolean): Question {
  const isOneLine = mayBeCommand && !query.trim().includes("\n")
  const texts = isOneLine ? [query.trim()] : errorLines(query).filter(isInformative)
  const lines = texts.slice(0, MAX_QUERY_LINES).map(errorText)
  const words = lines.flatMap(({ words, particulars }) => [...words, ...particulars])
  if (!isOneLine) return { lines, words: [...new Set(words)].filter(isWord) }
  const command = query.trim()
  return { lines, command, words: [...new Set([...words, ...command.slice(0, 300).split(/\s+/)])].filter(isWord) }
}

function isWord(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text)
}

function matched(fix: KnownFix, question: Question): FoundFix[] {
  const byCommand = question.command === undefined ? 0 : commandLikeness(question.command, fix.command)
  let best = { error: fix.lines[0] ?? "", likeness: byCommand }
  for (const line of fix.lines) {
    const likely = question.lines.filter((wanted) => mayBeSimilar(wanted, line, MIN_LIKENESS))
    if (likely.length === 0 || !isInformative(line)) continue
    const known = errorText(line)
    const close = Math.max(
      ...likely.map((wanted) => errorSimilarity(wanted, known) * (wanted === question.lines[0] ? 1 : FURTHER_LINE)),
    )
    if (close > best.likeness) best = { error: line, likeness: close }
  }
  return best.likeness < MIN_LIKENESS ? [] : [{ ...fix, ...best }]
}

/** Returns 1 for the same command on the same files, and less for other files, or for `npm` instead of `npm test`. */
function commandLikeness(query: string, ran: string): number {
  const [a, b] = [commandParts(query).parts, commandParts(ran).parts]
  if (a.length === 0) return 0
  const each = a.map(({ kind, args }) => {
    const same = b.filter((part) => part.kind === kind)
    if (same.some((part) => args.length === part.args.length && args.every((arg) => part.args.includes(arg)))) return 1
    if (same.length > 0) return args.length === 0 ? 0.9 : 0.8
    return b.some((part) => part.kind.startsWith(`${kind} `)) && args.length === 0 ? 0.7 : 0
  })
  return Math.min(...each)
}
