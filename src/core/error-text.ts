// Recognises the same error in outputs of different runs, by ignoring where and when it happened.

/**
 * The most characters of a line to examine. Longer lines are mostly data that a program printed, so only their beginning and
 * their last LINE_END_LENGTH characters are examined: some linters print the rule at the end.
 */
const MAX_LINE_LENGTH = 500
const LINE_END_LENGTH = 100
const MAX_OUTPUT_CHARS = 20_000
const MAX_LINES = 40

/** A mask from an earlier round, which stays as it is. */
const EXISTING_MASK = "(?<mask><(?:url|time|id|path|n|text)>)"
const URL = String.raw`(?<url>\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s'"<>)\]]+)`
const TIME = String.raw`(?<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|seconds?|min|minutes?|h|hours?)\b)`
/** A hexadecimal id. If a slash follows, it is the beginning of a path instead. */
const ID = String.raw`(?<id>\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64})\b(?![\\/])|\bsha\d{3}[:-][\w+/=]+)`
const TEXT =
  String.raw`(?<text>(?<![\p{L}\p{N}])'[^'\n]{1,300}'|"[^"\n]{1,300}"|` +
  "`[^`\\n]{1,300}`" +
  String.raw`|[‘“][^’”\n]{1,300}[’”])`
const PLACE = String.raw`(?:(?::\d+){1,2}\b|\(\d+(?:,\d+)?\))?`
const FILE_ENDING =
  "(?:[cm]?[jt]sx?|py|go|rs|java|kts?|rb|php|cs|c|cc|cpp|h|hpp|swift|vue|svelte|json|ya?ml|toml|md|html?|s?css|sh|sql|lock|txt)"
const PATH = String.raw`(?<path>(?:\b[a-z]:)?(?:[\\/]|~[\\/]|\.{1,2}[\\/]|[\w@.+-]+[\\/])[\w@.+\\/-]*[\w@+/-]${PLACE}|\b[\w@+-][\w@.+-]*\.${FILE_ENDING}\b${PLACE})`
/** A status code, which is part of the error. Other numbers are masked. */
const STATUS_CODE = String.raw`(?<status>\b(?:status|http|code)(?:\/\d(?:\.\d)?)?(?: code)?:? [1-5]\d\d\b)`
const NUMBER = String.raw`(?<n>(?<![\p{L}\p{N}_])\d+(?:[.,:]\d+)*%?(?![\p{L}\p{N}_]))`
const VARIABLE = new RegExp([EXISTING_MASK, STATUS_CODE, URL, TIME, ID, TEXT, PATH, NUMBER].join("|"), "giu")
/** Terminal colour sequences. */
const COLOUR = /\u001b\[[0-9;?]*[A-Za-z]/g

/** Masks what changes from run to run: file positions, numbers, hashes, times and quoted text. */
export function normaliseError(text: string): string {
  let masked = plainLine(text)
  for (;;) {
    const next = masked.replace(VARIABLE, mask).replaceAll(/\s+/g, " ").trim()
    if (next === masked) return masked
    masked = next // masking may bring two quotes onto one line; each round masks more, so this loop ends
  }
}

type Groups = Record<string, string | undefined>

function mask(...match: unknown[]): string {
  const groups = match.at(-1) as Groups
  const unchanged = groups.mask ?? groups.status
  if (unchanged !== undefined) return unchanged.toLowerCase()
  return `<${["url", "time", "id", "text", "path", "n"].find((name) => groups[name] !== undefined)}>`
}

/** The prefix that a task runner adds to each line of a task: `[lint] `, but not a level such as `[ERROR] `. */
const TASK_PREFIX = /^(?:\[(?!(?:error|fatal|warn|warning|info|debug|trace)\])[\w:./-]+\] (?=\S))+/i

function plainLine(text: string): string {
  const line = shortenLine(text.replaceAll(COLOUR, ""), MAX_LINE_LENGTH).replaceAll(/\s+/g, " ").trim()
  return line.replace(TASK_PREFIX, "")
}

/** Returns the beginning and the end of a long line. */
export function shortenLine(line: string, maxLength: number): string {
  return line.length <= maxLength
    ? line
    : `${line.slice(0, maxLength - LINE_END_LENGTH - 1)}…${line.slice(-LINE_END_LENGTH)}`
}

const ERROR_WORDS =
  /error|fatal|panic|exception|fail|cannot|can't|could not|couldn't|not found|denied|no such|undefined|unexpected|invalid|mismatch|missing|unknown|refused|unresolved|timed out|time-?out|assert|expected|unused|\bwant\b|does not|is not|must |✗|×|^E /i
const ERROR_NAMES =
  /\b[A-Z]\w*(?:Error|Exception)\b|\berror(?:\[\w+\]|\s+[A-Z]+\d+)?:|\berror TS\d+|\bpanicked at|\bpanic:|\bfatal:|\bFAILED\b.* - |^E /
/** A line of a compiler or a linter: the file position, then the problem. An address in a stack trace does not match. */
const PROBLEM_AT_POSITION =
  /^(?<file>(?:[A-Za-z]:)?[^\s:()]+\.\w+)(?::(?<line>\d+)(?::\d+)?:?|\((?<row>\d+)(?:,\d+)?\):?) (?:- )?(?!\+0x)(?<says>\S.{4,})/
/** A line in eslint's format, printed under the file's name. */
const PROBLEM_BELOW_FILE = /^\d+:\d+ (?:error|warning) (?<says>\S.{4,})/
/** Other lines that matter even if some lines have a file position: a pytest assertion, an exception, a panic. */
const NAMED_ERROR = /^(?:E |(?:\w+\.){0,9}[A-Z]\w*(?:Error|Exception)\b|panic:|thread .{1,99} panicked at)/
/** A line that says that something failed, but not what. */
const VAGUE =
  /\btask failed\b|\[(?:build|setup) failed\]|\bexit(?:ed)?(?: with)? (?:code|status)\b|^\W*FAIL(?:ED)?\W*(?:\S+\W*)?(?:\S*s\)?)?$|^make(?:\[\d+\])?: \*\*\*|^npm (?:ERR!|error)|\bcommand failed\b|ELIFECYCLE/i
/** A line that says which test failed, but not why. */
const TEST_NAME =
  /^(?:--- FAIL: .*|(?:FAIL|✗|×|✖|not ok \d+) [^:]*|FAILED (?!.* - ).*|test .* \.\.\. FAILED|● .* › .*)$/
/** A line that says nothing without the lines after it: an introduction, or the label of a value. */
const INTRODUCTION =
  /^(?:[\w '"]{0,40}:|--- \w+|(?:error )?trace:.*|(?:expected|actual|received|got|want)\b:?.{0,12})$/i
/** A stack frame of a panic or an exception. */
const STACK = /^(?:at \S|goroutine \d+ \[|created by \S|[\w./*()-]{1,200}\((?:\{?0x|\.\.\.\)))/
const PROGRESS = /^(?:=== (?:RUN|PAUSE|CONT|NAME)\b|--- (?:PASS|SKIP)\b|ok\s|PASS\b|[✓✔])/
const COUNT_LINE =
  /^[\s\W]*(?:(?:found )?\d+ (?:errors?|failed|failures?|problems?|issues?|passed)|tests?:|test files|(?:\[\S+\] )?\* [\w-]+: \d+$|exit code \d+$)/i

/**
 * Returns the lines of an output that say what went wrong, the most informative first. If some lines name a file position, the
 * others are noise.
 */
export function errorLines(output: string): string[] {
  const lines = [...new Set(output.slice(0, MAX_OUTPUT_CHARS).split("\n").map(plainLine))].filter(
    (line) => line !== "" && !COUNT_LINE.test(line),
  )
  const ranked = lines.map((line) => ({ line, rank: rankOf(line) })).filter(({ rank }) => rank < SILENT)
  if (ranked.length === 0) return lines.slice(-1)
  const informative = ranked.filter(({ rank }) => rank < UNCLEAR)
  const mostInformative = informative.some(({ line }) => hasPosition(line))
    ? informative.filter(({ line }) => hasPosition(line) || NAMED_ERROR.test(line))
    : informative
  return (mostInformative.length > 0 ? mostInformative : ranked)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MAX_LINES)
    .map(({ line }) => line)
}

/** Returns false if the line only says that something failed. Two failures that share such a line have nothing in common. */
export function isInformative(line: string): boolean {
  return rankOf(plainLine(line)) < UNCLEAR
}

const LAST_LINES = 60

/** Returns true if the end of an output names an error. Used for commands whose exit status is unknown. */
export function namesError(output: string): boolean {
  const end = output.slice(-MAX_OUTPUT_CHARS).trimEnd().split("\n").slice(-LAST_LINES).map(plainLine)
  return end.some((line) => line !== "" && !COUNT_LINE.test(line) && rankOf(line) <= 1)
}

const LOG_LINE = /(?:^|\s)(?:INFO|DEBUG|TRACE)\b|\blevel=(?:info|debug|trace)\b/
/** The rank of a line that says that something failed, but not what. */
const UNCLEAR = 4
/** The rank of a line that says nothing about a failure. */
const SILENT = 5

function rankOf(line: string): number {
  if (LOG_LINE.test(line) || PROGRESS.test(line) || STACK.test(line)) return SILENT
  const hasErrorWord = ERROR_WORDS.test(line)
  if (hasErrorWord && VAGUE.test(line)) return UNCLEAR
  if (hasPosition(line)) return hasErrorWord ? 0 : 2
  if (TEST_NAME.test(line) || INTRODUCTION.test(line)) return UNCLEAR
  if (ERROR_NAMES.test(line) || codeOf(line) !== undefined) return 1
  return hasErrorWord ? 3 : SILENT
}

function hasPosition(line: string): boolean {
  return PROBLEM_AT_POSITION.test(line) || PROBLEM_BELOW_FILE.test(line)
}

/** Returns the file and line that an error names. */
export function locationInError(line: string): { file: string; line: number } | undefined {
  const { file, line: afterColon, row: inParentheses } = PROBLEM_AT_POSITION.exec(plainLine(line))?.groups ?? {}
  return file === undefined ? undefined : { file, line: Number(afterColon ?? inParentheses) }
}

/** A code anywhere in a line: `error TS2339`, `error[E0425]`, `clippy::needless_return`. */
const CODE = /\berror (?<code>[A-Z]{1,5}\d{3,5})\b|\berror\[(?<rust>E\d{4})\]|\bclippy::(?<clippy>[\w-]+)/
/** A rule at the beginning of the message: ruff's `F401`, biome's `lint/style/useConst`, rubocop's `Style/Not`. */
const CODE_FIRST =
  /^(?:(?:fatal error|error|warning|[CEFW]): )?(?:\[\w+\] )?(?<code>[A-Z]{1,4}\d{3,5}\b|(?:lint|parse|assist)(?:\/\w+)+|[A-Z]\w+\/[A-Z]\w+(?=:))/
/** A rule at the end of the message: golangci-lint's `(nilerr)`, mypy's `[assignment]`. */
const RULE_LAST = /[([](?<rule>[\w@][\w@/-]+)[)\]]$/
/** A rule at the end of an eslint message, which has no brackets. */
const UNBRACKETED_RULE = /\s(?<rule>@?[a-z][\w/]*[-/][\w/-]+)$/
/** A prefix that distinguishes rules with the same name, because one linter contains others: `shadow: … (govet)`. */
const INNER_RULE = /^(?!error:|warning:|note:)(?<kind>[\w-]+): /
/** Names at the end of a message that are not rules: compiler errors that a linter passes on, and values. */
const NOT_RULES = new Set(["typecheck", "nil", "null", "none", "true", "false"])

/** The name that a compiler or a linter gives to this kind of error. */
function codeOf(line: string): string | undefined {
  const placedMessage = PROBLEM_AT_POSITION.exec(line)?.groups?.says
  const message = placedMessage ?? PROBLEM_BELOW_FILE.exec(line)?.groups?.says
  const first = message === undefined ? undefined : CODE_FIRST.exec(message)?.groups?.code
  const rule =
    message === undefined
      ? undefined
      : (placedMessage === undefined ? UNBRACKETED_RULE : RULE_LAST).exec(message)?.groups?.rule
  if (rule === undefined || NOT_RULES.has(rule.toLowerCase())) {
    const { code, rust, clippy } = CODE.exec(line)?.groups ?? {}
    return first ?? code ?? rust ?? (clippy && `clippy::${clippy.replaceAll("_", "-")}`)
  }
  const kind = first ?? INNER_RULE.exec(message!)?.groups?.kind
  return kind === undefined ? rule : `${rule} ${kind}`
}

/** An error line, prepared for comparison. */
export type ErrorText = { normalised: string; code?: string; words: Set<string>; particulars: Set<string> }

const COMMON_WORDS = new Set(
  "error errors failed fail failure exception fatal the a an of in on at to is was for and or with from by".split(" "),
)

export function errorText(line: string): ErrorText {
  const normalised = normaliseError(line)
  const allWords =
    normalised
      .replaceAll(/<\w+>/g, " ")
      .toLowerCase()
      .match(/[\p{L}\p{N}_]+/gu) ?? []
  const informative = allWords.filter((word) => !COMMON_WORDS.has(word))
  const code = codeOf(plainLine(line))
  return {
    normalised,
    code,
    words: new Set([...(informative.length > 0 ? informative : allWords), ...(code?.toLowerCase().split(" ") ?? [])]),
    particulars: detailsOf(line, code),
  }
}

/** The masked details that an error may be about, such as a module or a file. */
function detailsOf(line: string, code = ""): Set<string> {
  const particulars = [...plainLine(line).matchAll(VARIABLE)].flatMap(({ groups }) => {
    const { text, path } = (groups ?? {}) as Groups
    if (text !== undefined) return [text.slice(1, -1)]
    return path === undefined
      ? []
      : [
          path
            .replace(/(?::\d+){1,2}$|\(.*$/, "")
            .split(/[\\/]/)
            .at(-1)!,
        ]
  })
  return new Set(particulars.filter((text) => text !== "" && !code.includes(text)).map((text) => text.toLowerCase()))
}

/** The factor by which the similarity is reduced if two errors of the same kind name different things. */
const MISMATCH_FACTOR = 0.75

/**
 * Returns how similar a known error is to the query, from 0 to 1. If the query has a code, the other words do not count, because
 * they are the same for many errors. If it has none, the query may be only a part of the error.
 */
export function errorSimilarity(query: ErrorText, known: ErrorText): number {
  const sharesName = [...query.particulars].some((name) => known.particulars.has(name))
  if (query.code !== undefined) return query.code !== known.code ? 0 : sharesName ? 1 : MISMATCH_FACTOR
  const shared = [...query.words].filter((word) => known.words.has(word)).length
  if (shared === 0) return 0
  const coverage = shared / query.words.size
  const overlap = shared / (query.words.size + known.words.size - shared)
  return (0.6 * coverage + 0.4 * overlap) * (query.particulars.size > 0 && !sharesName ? MISMATCH_FACTOR : 1)
}

/** Returns false if the line cannot reach this similarity. It only searches the text, which is cheaper than `errorText`. */
export function mayBeSimilar({ code, words }: ErrorText, line: string, minSimilarity: number): boolean {
  const text = line.toLowerCase()
  if (code !== undefined) {
    const dashed = text.replaceAll("_", "-")
    return code
      .toLowerCase()
      .replaceAll("_", "-")
      .split(" ")
      .every((word) => dashed.includes(word))
  }
  let matches = 0
  for (const word of words) if (text.includes(word)) matches++
  return matches >= minSimilarity * words.size
}
