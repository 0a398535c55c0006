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

/** A fix that matches the query. `error` is the most similar line of its output. */
export type FoundFix = KnownFix & { error: string; likeness: number }

export type FixQuery = {
  /** An error's text, or the command that failed. */
  query: string
  /** The command that printed the error. If omitted, a query of one line may itself be a command. */
  ran?: string
  /** The current project. Fixes from here rank above equally good fixes from elsewhere. */
  inside: string
  project?: string
  /** If set, `project` is a project's complete path. */
  exactly?: boolean
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

/** The maximum number of fixes that are compared line by line: those with the best matching words. */
const MAX_COMPARED = 200
const MAX_QUERY_LINES = 10
/** The minimum similarity of a result. Below it, two errors share little more than common words. */
const MIN_LIKENESS = 0.6
/** The factor for every line of the query except the first, which is the most informative one. */
const FURTHER_LINE_FACTOR = 0.9
/** How much higher a fix in the current project ranks. */
const SAME_PROJECT_BONUS = 0.1
/**
 * The deduction for each edit, up to a limit. If there was only one edit, it was the fix; if there were forty, any of them may
 * have been.
 */
const EDIT_DEDUCTION = 0.01

/** Finds what fixed an error, or made a command pass. */
export function findFixes(knowledge: Knowledge, request: FixQuery): FoundFixes {
  const { query, ran, inside, project, exactly, here, except } = request
  if (ran !== undefined && !isFixableCommand(ran)) return { solved: [], unsolved: [] }
  const parsedQuery = parseFixQuery(query, ran === undefined)
  const candidates = knowledge.fixes.fixesWithWords(parsedQuery.words, {
    project: here ? inside : project,
    exactly: here || exactly,
    except,
    limit: MAX_COMPARED,
  })
  const matches = candidates.flatMap((fix) => matchFix(fix, parsedQuery))
  const score = ({ likeness, project, edits }: FoundFix) =>
    likeness + (project === inside ? SAME_PROJECT_BONUS : 0) - Math.min(SAME_PROJECT_BONUS, EDIT_DEDUCTION * edits)
  matches.sort((a, b) => score(b) - score(a) || (b.at ?? 0) - (a.at ?? 0) || a.failed_number - b.failed_number)
  return {
    solved: matches.filter(({ fixed_number }) => fixed_number !== undefined),
    unsolved: matches.filter(({ fixed_number }) => fixed_number === undefined),
  }
}

type ParsedFixQuery = {
  lines: ErrorText[]
  /** The query as a command, if it may be one. */
  command?: string
  words: string[]
}

function parseFixQuery(query: string, mayBeCommand: boolean): ParsedFixQuery {
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

function matchFix(fix: KnownFix, query: ParsedFixQuery): FoundFix[] {
  const byCommand = query.command === undefined ? 0 : commandLikeness(query.command, fix.command)
  let best = { error: fix.lines[0] ?? "", likeness: byCommand }
  for (const line of fix.lines) {
    const similarLines = query.lines.filter((wanted) => mayBeSimilar(wanted, line, MIN_LIKENESS))
    if (similarLines.length === 0 || !isInformative(line)) continue
    const knownError = errorText(line)
    const similarity = Math.max(
      ...similarLines.map(
        (wanted) => errorSimilarity(wanted, knownError) * (wanted === query.lines[0] ? 1 : FURTHER_LINE_FACTOR),
      ),
    )
    if (similarity > best.likeness) best = { error: line, likeness: similarity }
  }
  return best.likeness < MIN_LIKENESS ? [] : [{ ...fix, ...best }]
}

/** Returns 1 for the same command on the same files, and less for other files, or for `npm` instead of `npm test`. */
function commandLikeness(query: string, ran: string): number {
  const [a, b] = [commandParts(query).parts, commandParts(ran).parts]
  if (a.length === 0) return 0
  const likenesses = a.map(({ kind, args }) => {
    const sameKind = b.filter((part) => part.kind === kind)
    if (sameKind.some((part) => args.length === part.args.length && args.every((arg) => part.args.includes(arg))))
      return 1
    if (sameKind.length > 0) return args.length === 0 ? 0.9 : 0.8
    return b.some((part) => part.kind.startsWith(`${kind} `)) && args.length === 0 ? 0.7 : 0
  })
  return Math.min(...likenesses)
}
