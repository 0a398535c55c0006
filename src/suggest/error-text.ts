// What of an error's text is the error, and what is only where and when it happened.

/** Longer lines are data that a program printed. */
const LONGEST_LINE = 500
const LOOKED_AT = 20_000
const MOST_LINES = 40

const HELD = "(?<held><(?:url|time|id|path|n|text)>)"
const URL = String.raw`(?<url>\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s'"<>)\]]+)`
const TIME = String.raw`(?<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|seconds?|min|minutes?|h|hours?)\b)`
const ID = String.raw`(?<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b|\bsha\d{3}[:-][\w+/=]+)`
const TEXT =
  String.raw`(?<text>(?<![\p{L}\p{N}])'[^'\n]{1,300}'|"[^"\n]{1,300}"|` +
  "`[^`\\n]{1,300}`" +
  String.raw`|[‘“][^’”\n]{1,300}[’”])`
const PLACE = String.raw`(?:(?::\d+){1,2}\b|\(\d+(?:,\d+)?\))?`
const FILE_ENDING =
  "(?:[cm]?[jt]sx?|py|go|rs|java|kts?|rb|php|cs|c|cc|cpp|h|hpp|swift|vue|svelte|json|ya?ml|toml|md|html?|s?css|sh|sql|lock|txt)"
const PATH = String.raw`(?<path>(?:\b[a-z]:)?(?:[\\/]|~[\\/]|\.{1,2}[\\/]|[\w@.+-]+[\\/])[\w@.+\\/-]*[\w@+/-]${PLACE}|\b[\w@+-][\w@.+-]*\.${FILE_ENDING}\b${PLACE})`
/** A status is what went wrong, not how often. */
const KEPT = String.raw`(?<kept>\b(?:status|http|code)(?:\/\d(?:\.\d)?)?(?: code)?:? [1-5]\d\d\b)`
const NUMBER = String.raw`(?<n>(?<![\p{L}\p{N}_])\d+(?:[.,:]\d+)*%?(?![\p{L}\p{N}_]))`
const VARIABLE = new RegExp([HELD, KEPT, URL, TIME, ID, TEXT, PATH, NUMBER].join("|"), "giu")
/** What programs send to colour a terminal. */
const COLOUR = /\u001b\[[0-9;?]*[A-Za-z]/g

/** The error with what changes from run to run masked: places, numbers, hashes, times, and what stands in quotes. */
export function normaliseError(text: string): string {
  let now = plainLine(text)
  for (;;) {
    const next = now.replace(VARIABLE, mask).replaceAll(/\s+/g, " ").trim()
    if (next === now) return now
    now = next // a mask may bring two quotes onto one line; each round masks more, so this ends
  }
}

type Groups = Record<string, string | undefined>

function mask(...match: unknown[]): string {
  const groups = match.at(-1) as Groups
  const held = groups.held ?? groups.kept
  if (held !== undefined) return held.toLowerCase()
  return `<${["url", "time", "id", "text", "path", "n"].find((name) => groups[name] !== undefined)}>`
}

function plainLine(text: string): string {
  return text.replaceAll(COLOUR, "").slice(0, LONGEST_LINE).replaceAll(/\s+/g, " ").trim()
}

const TELLS =
  /error|fatal|panic|exception|fail|cannot|can't|could not|couldn't|not found|denied|no such|undefined|unexpected|invalid|mismatch|missing|unknown|refused|unresolved|timed out|time-?out|assert|expected|unused|\bwant\b|does not|is not|must |✗|×|^E {2,}/i
const NAMES =
  /\b[A-Z]\w*(?:Error|Exception)\b|\berror(?:\[\w+\]|\s+[A-Z]+\d+)?:|\berror TS\d+|\bpanicked at|\bpanic:|\bfatal:|\bFAILED\b.* - |^E {2,}/
/** A compiler's or a linter's own form: the place, then what is wrong there. */
const PLACED = /^(?:\[[\w:-]+\] )?[^\s:()]+\.\w+(?::\d+(?::\d+)?:?|\(\d+(?:,\d+)?\):?) (?:- )?\S.{4,}/
/** That something failed, not what. */
const VAGUE =
  /\btask failed\b|\[(?:build|setup) failed\]|\bexit(?:ed)?(?: with)? (?:code|status)\b|^\W*FAIL(?:ED)?\W*(?:\S+\W*)?(?:\S*s\)?)?$|^make(?:\[\d+\])?: \*\*\*|^npm (?:ERR!|error)|\bcommand failed\b|ELIFECYCLE/i
const COUNTS =
  /^[\s\W]*(?:(?:found )?\d+ (?:errors?|failed|failures?|problems?|issues?|passed)|tests?:|test files|(?:\[\S+\] )?\* [\w-]+: \d+$|exit code \d+$)/i

/** The lines of an output that say what went wrong, the most telling first. */
export function errorLines(output: string): string[] {
  const lines = [...new Set(output.slice(0, LOOKED_AT).split("\n").map(plainLine))].filter(
    (line) => line !== "" && !COUNTS.test(line),
  )
  const ranked = lines.map((line) => ({ line, rank: rankOf(line) })).filter(({ rank }) => rank < SILENT)
  if (ranked.length === 0) return lines.slice(-1)
  const telling = ranked.filter(({ rank }) => rank < UNCLEAR)
  return (telling.length > 0 ? telling : ranked)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MOST_LINES)
    .map(({ line }) => line)
}

const LOGS = /(?:^|\s)(?:INFO|DEBUG|TRACE)\b|\blevel=(?:info|debug|trace)\b/
/** Said by every failure of its kind, so two errors that share it have nothing in common. */
const UNCLEAR = 4
const SILENT = 5

function rankOf(line: string): number {
  if (LOGS.test(line)) return SILENT
  const tells = TELLS.test(line)
  if (tells && VAGUE.test(line)) return UNCLEAR
  if (PLACED.test(line)) return tells ? 0 : 2
  if (NAMES.test(line)) return 1
  return tells ? 3 : SILENT
}

/** An error's line, ready to be compared. */
export type ErrorText = { normalised: string; words: Set<string>; particulars: Set<string> }

const COMMON = new Set(
  "error errors failed fail failure exception fatal the a an of in on at to is was for and or with from by".split(" "),
)

export function errorText(line: string): ErrorText {
  const normalised = normaliseError(line)
  const all =
    normalised
      .replaceAll(/<\w+>/g, " ")
      .toLowerCase()
      .match(/[\p{L}\p{N}_]+/gu) ?? []
  const telling = all.filter((word) => !COMMON.has(word))
  return { normalised, words: new Set(telling.length > 0 ? telling : all), particulars: particularsOf(line) }
}

/** What a mask hides and an error may still be about: the module's name, the file. */
function particularsOf(line: string): Set<string> {
  const found = [...plainLine(line).matchAll(VARIABLE)].flatMap(({ groups }) => {
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
  return new Set(found.map((text) => text.toLowerCase()).filter((text) => text !== ""))
}

/** Other names in the same error: it is of the same kind, but may be another thing. */
const OTHER_PARTICULARS = 0.75

/** How close an error is to what was asked, from 0 to 1. What was asked may be a part of it. */
export function likeness(asked: ErrorText, known: ErrorText): number {
  const shared = [...asked.words].filter((word) => known.words.has(word)).length
  if (shared === 0) return 0
  const held = shared / asked.words.size
  const alike = shared / (asked.words.size + known.words.size - shared)
  const differs = asked.particulars.size > 0 && ![...asked.particulars].some((name) => known.particulars.has(name))
  return (0.6 * held + 0.4 * alike) * (differs ? OTHER_PARTICULARS : 1)
}
