// Recognises the same error in outputs of different runs, by ignoring where and when it happened.

/**
 * The maximum number of characters of a line to examine. Longer lines are mostly data that a program printed, so only their
 * beginning and their last LINE_END_LENGTH characters are examined: some linters print the rule at the end.
 */
const MAX_LINE_LENGTH = 500
const LINE_END_LENGTH = 100
const MAX_OUTPUT_CHARS = 20_000
const MAX_LINES = 40

/** Matches a mask from an earlier round, which is not masked again. */
const EXISTING_MASK = "(?<mask><(?:url|time|id|path|n|text)>)"
const URL = String.raw`(?<url>\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s'"<>)\]]+)`
const TIME = String.raw`(?<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|seconds?|min|minutes?|h|hours?)\b)`
/** Matches a hexadecimal id or a checksum. If a slash follows an id, it is the beginning of a path instead. */
const ID = String.raw`(?<id>\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64})\b(?![\\/])|\bsha\d{3}[:-][\w+/=]+)`
const TEXT =
  String.raw`(?<text>(?<![\p{L}\p{N}])'[^'\n]{1,300}'|"[^"\n]{1,300}"|` +
  "`[^`\\n]{1,300}`" +
  String.raw`|[‘“][^’”\n]{1,300}[’”])`
const POSITION = String.raw`(?:(?::\d+){1,2}\b|\(\d+(?:,\d+)?\))?`
const FILE_ENDING =
  "(?:[cm]?[jt]sx?|py|go|rs|java|kts?|rb|php|cs|c|cc|cpp|h|hpp|swift|vue|svelte|json|ya?ml|toml|md|html?|s?css|sh|sql|lock|txt)"
const PATH = String.raw`(?<path>(?:\b[a-z]:)?(?:[\\/]|~[\\/]|\.{1,2}[\\/]|[\w@.+-]+[\\/])[\w@.+\\/-]*[\w@+/-]${POSITION}|\b[\w@+-][\w@.+-]*\.${FILE_ENDING}\b${POSITION})`
/** Matches a status code. It is not masked like other numbers, because it identifies the error. */
const STATUS_CODE = String.raw`(?<status>\b(?:status|http|code)(?:\/\d(?:\.\d)?)?(?: code)?:? [1-5]\d\d\b)`
const NUMBER = String.raw`(?<n>(?<![\p{L}\p{N}_])\d+(?:[.,:]\d+)*%?(?![\p{L}\p{N}_]))`
const VARIABLE = new RegExp([EXISTING_MASK, STATUS_CODE, URL, TIME, ID, TEXT, PATH, NUMBER].join("|"), "giu")
/** Matches the sequences with which programs colour text in a terminal. */
const COLOUR = /\u001b\[[0-9;?]*[A-Za-z]/g

/** Masks what changes from run to run: file positions, numbers, hashes, times and quoted text. */
export function normaliseError(text: string): string {
  let masked = plainLine(text)
  for (;;) {
    const nextMasked = masked.replace(VARIABLE, mask).replaceAll(/\s+/g, " ").trim()
    if (nextMasked === masked) return masked
    masked = nextMasked // masks are short, so a quotation that was too long to match may match in the next round
  }
}

type Groups = Record<string, string | undefined>

function mask(...match: unknown[]): string {
  const groups = match.at(-1) as Groups
  const unmasked = groups.mask ?? groups.status
  if (unmasked !== undefined) return unmasked.toLowerCase()
  return `<${["url", "time", "id", "text", "path", "n"].find((name) => groups[name] !== undefined)}>`
}

/** The prefix that a task runner adds to each line of a task: `[lint] `, but not a level such as `[ERROR] `. */
const TASK_PREFIX = /^(?:\[(?!(?:error|fatal|warn|warning|info|debug|trace)\])[\w:./-]+\] (?=\S))+/i

function plainLine(text: string): string {
  const line = shortenLine(text.replaceAll(COLOUR, ""), MAX_LINE_LENGTH).replaceAll(/\s+/g, " ").trim()
  return line.replace(TASK_PREFIX, "")
}

/** Replaces the middle of a long line with an ellipsis. */
export function shortenLine(line: string, maxLength: number): string {
  return line.length <= maxLength
    ? line
    : `${line.slice(0, maxLength - LINE_END_LENGTH - 1)}…${line.slice(-LINE_END_LENGTH)}`
}

const ERROR_WORDS =
  /error|fatal|panic|exception|fail|cannot|can't|could not|couldn't|not found|denied|no such|undefined|unexpected|invalid|mismatch|missing|unknown|refused|unresolved|timed out|time-?out|assert|expected|unused|\bwant\b|does not|is not|must |✗|×|^E /i
const ERROR_NAMES =
  /\b[A-Z]\w*(?:Error|Exception)\b|\berror(?:\[\w+\]|\s+[A-Z]+\d+)?:|\berror TS\d+|\bpanicked at|\bpanic:|\bfatal:|\bFAILED\b.* - |^E /
/** Matches a compiler's or a linter's line: the file position, then the problem. A frame of a stack trace does not match. */
const PROBLEM_AT_POSITION =
  /^(?<file>(?:[A-Za-z]:)?[^\s:()]+\.\w+)(?::(?<line>\d+)(?::\d+)?:?|\((?<row>\d+)(?:,\d+)?\):?) (?:- )?(?!\+0x)(?<says>\S.{4,})/
/** Matches a line in eslint's format, which follows a line with the file's name. */
const PROBLEM_BELOW_FILE = /^\d+:\d+ (?:error|warning) (?<says>\S.{4,})/
/** Matches a pytest assertion, an exception or a panic, which matter even if other lines have a file position. */
const NAMED_ERROR = /^(?:E |(?:\w+\.){0,9}[A-Z]\w*(?:Error|Exception)\b|panic:|thread .{1,99} panicked at)/
/** Matches a line that says that something failed, but not what. */
const VAGUE_LINE =
  /\btask failed\b|\[(?:build|setup) failed\]|\bexit(?:ed)?(?: with)? (?:code|status)\b|^\W*FAIL(?:ED)?\W*(?:\S+\W*)?(?:\S*s\)?)?$|^make(?:\[\d+\])?: \*\*\*|^npm (?:ERR!|error)|\bcommand failed\b|ELIFECYCLE/i
/** Matches a line that says which test failed, but not why. */
const TEST_NAME_LINE =
  /^(?:--- FAIL: .*|(?:FAIL|✗|×|✖|not ok \d+) [^:]*|FAILED (?!.* - ).*|test .* \.\.\. FAILED|● .* › .*)$/
/** Matches a line that says nothing without the lines after it: an introduction, or the label of a value. */
const INTRODUCTION =
  /^(?:[\w '"]{0,40}:|--- \w+|(?:error )?trace:.*|(?:expected|actual|received|got|want)\b:?.{0,12})$/i
/** Matches a stack frame of a panic or an exception. */
const STACK_FRAME = /^(?:at \S|goroutine \d+ \[|created by \S|[\w./*()-]{1,200}\((?:\{?0x|\.\.\.\)))/
const PROGRESS_LINE = /^(?:=== (?:RUN|PAUSE|CONT|NAME)\b|--- (?:PASS|SKIP)\b|ok\s|PASS\b|[✓✔])/
const COUNT_LINE =
  /^[\s\W]*(?:(?:found )?\d+ (?:errors?|failed|failures?|problems?|issues?|passed)|tests?:|test files|(?:\[\S+\] )?\* [\w-]+: \d+$|exit code \d+$)/i

/**
 * Returns the lines of an output that say what went wrong, the most informative first. If some lines have a file position,
 * returns only those and the lines that match NAMED_ERROR. If no line says what went wrong, returns the last line.
 */
export function errorLines(output: string): string[] {
  const lines = [...new Set(output.slice(0, MAX_OUTPUT_CHARS).split("\n").map(plainLine))].filter(
    (line) => line !== "" && !COUNT_LINE.test(line),
  )
  const rankedLines = lines.map((line) => ({ line, rank: rankOf(line) })).filter(({ rank }) => rank < SILENT_RANK)
  if (rankedLines.length === 0) return lines.slice(-1)
  const informativeLines = rankedLines.filter(({ rank }) => rank < UNCLEAR_RANK)
  const mostInformativeLines = informativeLines.some(({ line }) => hasPosition(line))
    ? informativeLines.filter(({ line }) => hasPosition(line) || NAMED_ERROR.test(line))
    : informativeLines
  return (mostInformativeLines.length > 0 ? mostInformativeLines : rankedLines)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MAX_LINES)
    .map(({ line }) => line)
}

/** Returns false if the line only says that something failed. Unrelated failures may share such a line. */
export function isInformative(line: string): boolean {
  return rankOf(plainLine(line)) < UNCLEAR_RANK
}

const MAX_LAST_LINES = 60

/** Returns true if the end of an output names an error. Used for commands whose exit status is unknown. */
export function namesError(output: string): boolean {
  const lastLines = output.slice(-MAX_OUTPUT_CHARS).trimEnd().split("\n").slice(-MAX_LAST_LINES).map(plainLine)
  return lastLines.some((line) => line !== "" && !COUNT_LINE.test(line) && rankOf(line) <= 1)
}

const LOG_LINE = /(?:^|\s)(?:INFO|DEBUG|TRACE)\b|\blevel=(?:info|debug|trace)\b/
/** The rank of a line that says that something failed, but not what. */
const UNCLEAR_RANK = 4
/** The rank of a line that says nothing about a failure. */
const SILENT_RANK = 5

function rankOf(line: string): number {
  if (LOG_LINE.test(line) || PROGRESS_LINE.test(line) || STACK_FRAME.test(line)) return SILENT_RANK
  const hasErrorWord = ERROR_WORDS.test(line)
  if (hasErrorWord && VAGUE_LINE.test(line)) return UNCLEAR_RANK
  if (hasPosition(line)) return hasErrorWord ? 0 : 2
  if (TEST_NAME_LINE.test(line) || INTRODUCTION.test(line)) return UNCLEAR_RANK
  if (ERROR_NAMES.test(line) || codeOf(line) !== undefined) return 1
  return hasErrorWord ? 3 : SILENT_RANK
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
const LEADING_RULE =
  /^(?:(?:fatal error|error|warning|[CEFW]): )?(?:\[\w+\] )?(?<code>[A-Z]{1,4}\d{3,5}\b|(?:lint|parse|assist)(?:\/\w+)+|[A-Z]\w+\/[A-Z]\w+(?=:))/
/** A rule at the end of the message: golangci-lint's `(nilerr)`, mypy's `[assignment]`. */
const TRAILING_RULE = /[([](?<rule>[\w@][\w@/-]+)[)\]]$/
/** A rule at the end of an eslint message, which has no brackets. */
const UNBRACKETED_RULE = /\s(?<rule>@?[a-z][\w/]*[-/][\w/-]+)$/
/** A prefix that distinguishes rules with the same name, because one linter contains others: `shadow: … (govet)`. */
const INNER_RULE = /^(?!error:|warning:|note:)(?<kind>[\w-]+): /
/** Names at the end of a message that are not rules: labels of compiler errors that a linter reports, and values. */
const NOT_RULES = new Set(["typecheck", "nil", "null", "none", "true", "false"])

/** Returns the name that a compiler or a linter gives to this kind of error. */
function codeOf(line: string): string | undefined {
  const placedMessage = PROBLEM_AT_POSITION.exec(line)?.groups?.says
  const message = placedMessage ?? PROBLEM_BELOW_FILE.exec(line)?.groups?.says
  const leadingRule = message === undefined ? undefined : LEADING_RULE.exec(message)?.groups?.code
  const rule =
    message === undefined
      ? undefined
      : (placedMessage === undefined ? UNBRACKETED_RULE : TRAILING_RULE).exec(message)?.groups?.rule
  if (rule === undefined || NOT_RULES.has(rule.toLowerCase())) {
    const { code, rust, clippy } = CODE.exec(line)?.groups ?? {}
    return leadingRule ?? code ?? rust ?? (clippy && `clippy::${clippy.replaceAll("_", "-")}`)
  }
  const kind = leadingRule ?? INNER_RULE.exec(message!)?.groups?.kind
  return kind === undefined ? rule : `${rule} ${kind}`
}

/** A line that reports an error, prepared for comparison with others. */
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
  const informativeWords = allWords.filter((word) => !COMMON_WORDS.has(word))
  const code = codeOf(plainLine(line))
  return {
    normalised,
    code,
    words: new Set([
      ...(informativeWords.length > 0 ? informativeWords : allWords),
      ...(code?.toLowerCase().split(" ") ?? []),
    ]),
    particulars: particularsOf(line, code),
  }
}

/** Returns the quoted texts and file names in a line, which `normaliseError` masks. They show what the error is about. */
function particularsOf(line: string, code = ""): Set<string> {
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

/** The similarity is multiplied by this factor if two errors of the same kind do not name the same thing. */
const MISMATCH_FACTOR = 0.75

/**
 * Returns how similar a known error is to the query, from 0 to 1. If the query has a code, the other words do not count, because
 * they are the same for many errors. If it has none, what counts most is how many of its words the known error contains, because
 * the query may be only a part of the error.
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
