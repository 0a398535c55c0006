import { type Base64Form, base64Forms, decodeAt } from "./base64.ts"
import { keyLinesEnd } from "./blocks.ts"
import { isCutAt, isCutBefore, isScreenWrap } from "./cut.ts"
import { EDGE_RULES, PRIVATE_KEY_RULE, RUN_RULES, type Span, TOKEN_RULES, type TokenRule } from "./rules.ts"
import { findUnknownToken, isMixedRandom } from "./unknown.ts"
import { hasManyCharacters, looksRandom } from "./values.ts"

// Finds tokens that name their issuer. Each contains a long run of characters of one alphabet, and such runs are rare. So the
// text is first probed at every 20th character, and only runs are searched for the issuers' marks.

/** The minimum length of a run. Base64 and paths are runs too. Slashes and plus signs divide a run into pieces. */
const MIN_RUN_LENGTH = 20
const MIN_PIECE_LENGTH = 20

const PIECE_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~"
const isRunCode = new Uint8Array(1 << 16)
for (const c of `${PIECE_CHARACTERS}/+`) isRunCode[c.charCodeAt(0)] = 1
/** Maps a character to bits that describe it. 0 ends a piece. */
const pieceKind = new Uint8Array(1 << 16)
const OTHER = 1
const DIGIT = 2
const LOWER_CASE = 4
const CAPITAL = 8
for (const c of PIECE_CHARACTERS)
  pieceKind[c.charCodeAt(0)] = /\d/.test(c) ? DIGIT : /[a-z]/.test(c) ? LOWER_CASE : /[A-Z]/.test(c) ? CAPITAL : OTHER

/** Keys by their first three characters, six bits each. The complete key is compared afterwards. */
const keysByStart = groupByStart(TOKEN_RULES)
const isStart = new Uint8Array(1 << 18)
for (const start of keysByStart.keys()) isStart[start] = 1

/**
 * Finds the tokens in a text. With `onlyKnownIssuers`, finds only tokens of known issuers, for texts in which ids are expected.
 * Returns the positions of line breaks inside runs that the edge of a screen may have caused.
 */
export function findTokens(text: string, spans: Span[], onlyKnownIssuers = false): readonly number[] {
  const length = text.length
  let progress: { decoded: number } | undefined
  let wraps: number[] = NO_WRAPS
  for (let start = nextRun(text, 0); start !== -1; ) {
    if (text.charCodeAt(start - 1) === NEWLINE) wraps = addWrap(text, start - 1, wraps)
    let end = start
    let pieceStart = start
    let kinds = 0
    /** The beginning of the current sequence of letters and digits. */
    let wordStart = start
    /** The length of the longest sequence of letters and digits in the piece so far. */
    let longestWord = 0
    let runKinds = 0
    let lastThree = 0
    let pieceStop = -1
    for (; end < length; end++) {
      const code = text.charCodeAt(end)
      const kind = pieceKind[code]!
      if (kind <= OTHER) {
        if (end - wordStart > longestWord) longestWord = end - wordStart
        wordStart = end + 1
        if (kind === 0) {
          if (end - pieceStart >= MIN_PIECE_LENGTH)
            judgePiece(text, pieceStart, end, onlyKnownIssuers ? 0 : kinds, longestWord, spans)
          else if (pieceStart <= start + 1 && kinds > CAPITAL && !onlyKnownIssuers)
            judgeBase64(text, pieceStart, end, spans)
          if (isRunCode[code] === 0) break
          pieceStart = end + 1
          runKinds |= kinds
          kinds = lastThree = longestWord = 0
          continue
        }
      }
      kinds |= kind
      lastThree = ((lastThree << 6) | (code & 63)) & 0x3ffff
      if (isStart[lastThree] === 0) continue
      if (pieceStop < end) pieceStop = pieceEnd(text, end)
      progress ??= { decoded: 0 }
      const span = matchRules(text, end - 2, pieceStop, keysByStart.get(lastThree)!, progress)
      if (!span) continue
      if (span.rule !== EXAMPLE_RULE) spans.push(span)
      if (span.rule === AWS_KEY_RULE) searchAwsSecret(text, span.end, spans)
      end = span.end - 1
      start = pieceStart = wordStart = span.end
      kinds = runKinds = lastThree = longestWord = 0
    }
    if (end >= length && length - pieceStart >= MIN_PIECE_LENGTH) {
      judgePiece(
        text,
        pieceStart,
        length,
        onlyKnownIssuers ? 0 : kinds,
        Math.max(longestWord, length - wordStart),
        spans,
      )
    }
    if (((runKinds | kinds) & MIXED_KINDS) === MIXED_KINDS && !onlyKnownIssuers) judgeCut(text, start, end, spans)
    if (text.charCodeAt(end) === NEWLINE) wraps = addWrap(text, end, wraps)
    start = nextRun(text, end + 1)
  }
  return wraps
}

const NEWLINE = 10
const NO_WRAPS: number[] = []

function addWrap(text: string, newline: number, wraps: number[]): number[] {
  const isInside = isRunCode[text.charCodeAt(newline - 1)] === 1 && isRunCode[text.charCodeAt(newline + 1)] === 1
  if (!isInside || wraps[wraps.length - 1] === newline || matchEnd(PLAIN_WORD, text, newline + 1) !== -1) return wraps
  if (!isScreenWrap(text, newline)) return wraps
  if (wraps === NO_WRAPS) return [newline]
  wraps.push(newline)
  return wraps
}

/** Matches a plain word at the beginning of the next line. */
const PLAIN_WORD = /(?:[A-Z]?[a-z]*|[A-Z]*)[.,:;]?(?![A-Za-z0-9_+/=~-])/y

/** Reports a run whose mark may have been cut off, if the run is random and next to a cut. */
function judgeCut(text: string, from: number, to: number, spans: Span[]): void {
  let start = from
  while (start < to && text[start] === ".") start++
  let end = to
  while (end > start && text[end - 1] === ".") end--
  if (end - start < MIN_PIECE_LENGTH || end - start > MAX_CUT_LENGTH) return
  if (!isCutAt(text, to) && !isCutBefore(text, start)) return
  if (isMixedRandom(text.slice(start, end), MIN_PIECE_LENGTH)) spans.push({ start, end, rule: "token" })
}

const MIXED_KINDS = DIGIT | LOWER_CASE | CAPITAL
const MAX_CUT_LENGTH = 4_096

/** Judges a piece without an issuer's mark. Its shape, or the text before it, may show that it is a token. */
function judgePiece(text: string, start: number, end: number, kinds: number, longest: number, spans: Span[]): void {
  searchEdge(text, start, spans)
  if ((kinds & TOKEN_KINDS) !== TOKEN_KINDS) return
  const isLongEnough = (kinds & CAPITAL) !== 0 ? longest >= 14 : longest >= 20 || (longest === 12 && end - start >= 39)
  const span = isLongEnough && findUnknownToken(text, start, end, runEnd(text, end))
  if (span) spans.push(span)
}

/** The kinds of characters that a token without a known mark must contain. */
const TOKEN_KINDS = OTHER | DIGIT | LOWER_CASE

/** Judges a run as base64 if its first piece, which ends at a slash or a plus sign, is too short to be judged on its own. */
function judgeBase64(text: string, start: number, end: number, spans: Span[]): void {
  const stop = runEnd(text, end)
  const span = stop - start >= 40 && findUnknownToken(text, start, end, stop)
  if (span) spans.push(span)
}

/**
 * Returns the start of the next run of at least MIN_RUN_LENGTH characters, or -1. It checks each window from its end, and continues
 * after a character that cannot be part of a run.
 */
function nextRun(text: string, from: number): number {
  const length = text.length
  let start = from
  while (start + MIN_RUN_LENGTH <= length) {
    let probe = start + MIN_RUN_LENGTH - 1
    while (probe >= start && isRunCode[text.charCodeAt(probe)] === 1) probe--
    if (probe < start) return start
    start = probe + 1
  }
  return -1
}

/** Returns the end of a run. Reads at most 512 characters, because this is called once for each piece of a run. */
function runEnd(text: string, from: number): number {
  const stop = Math.min(text.length, from + 512)
  let end = from
  while (end < stop && isRunCode[text.charCodeAt(end)] === 1) end++
  return end
}

function pieceEnd(text: string, from: number): number {
  let end = from
  while (end < text.length && pieceKind[text.charCodeAt(end)] !== 0) end++
  return end
}

function matchRules(
  text: string,
  at: number,
  runStop: number,
  candidates: Key[],
  progress: { decoded: number },
): Span | undefined {
  const keys = candidates.filter(({ key }) => text.startsWith(key, at))
  if (keys.length === 0) return undefined
  for (const { key, rule, encoded } of keys) {
    if (rule.encodedOnly && encoded === undefined) continue
    if (encoded !== undefined) {
      const span = matchEncoded(text, at, rule, encoded, progress)
      if (span) return span
      continue
    }
    const start = at - (rule.back ?? 0)
    if (start < 0 || (rule.boundary && !isBoundary(text, start))) continue
    const end = matchEnd(rule.token, text, start)
    if (end === -1) continue
    const token = text.slice(start, end)
    if (!hasManyCharacters(token)) return { start, end, rule: EXAMPLE_RULE }
    if (!isRealToken(rule, key, token)) continue
    const tokenEnd = rule.name === PRIVATE_KEY_RULE ? keyLinesEnd(text, end) : foldedEnd(text, extendedEnd(text, end))
    return { start, end: tokenEnd, rule: rule.name }
  }
  const isFolded = mayFold(text, at, runStop) && foldEnd(text, runStop) !== -1
  return (isFolded ? matchFolded(text, at, keys) : undefined) ?? matchCut(text, at, runStop, keys)
}

/** Matches a token whose end was cut off. If its mark alone proves little, there must be a trace of the cut. */
function matchCut(text: string, at: number, runStop: number, keys: Key[]): Span | undefined {
  if (runStop - at > MAX_PIECE_LENGTH) return undefined
  let end = runStop
  while (text[end - 1] === ".") end--
  for (const { key, rule, encoded } of keys) {
    if (encoded !== undefined || rule.encodedOnly || rule.back || (rule.boundary && !isBoundary(text, at))) continue
    const isWeak = rule.boundary || rule.random || key.length < 4
    if (isWeak && !isCutAt(text, runStop)) continue
    const body = text.slice(at + key.length, end)
    if (looksRandom(body, isWeak ? 10 : 12, isWeak ? 0.28 : 0.2)) return { start: at, end, rule: rule.name }
  }
  return undefined
}

/** Matches a rule against decoded base64. Each run is decoded only once, however many marks it seems to contain. */
function matchEncoded(
  text: string,
  at: number,
  rule: TokenRule,
  before: Base64Form["before"],
  progress: { decoded: number },
): Span | undefined {
  if (at < progress.decoded) return undefined
  const { start, end, plain } = decodeAt(text, at, before)
  progress.decoded = end
  const stop = matchEnd(rule.token, plain, 0)
  if (stop === -1 || !looksRandom(plain.slice(0, stop), MIN_RUN_LENGTH, 0.12)) return undefined
  return { start, end: withPadding(text, end), rule: rule.name }
}

function withPadding(text: string, end: number): number {
  return text[end] !== "=" ? end : text[end + 1] === "=" ? end + 2 : end + 1
}

/**
 * The rule name for an example token, such as `xxxx…` after an issuer's mark. Such a token is neither redacted nor searched
 * again.
 */
const EXAMPLE_RULE = ""

function isRealToken(rule: TokenRule, key: string, token: string): boolean {
  if (token.endsWith("EXAMPLE")) return false
  return !rule.random || looksRandom(token.slice(key.length), 8, 0.12)
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}

/**
 * True if a token can start at `at`: the character before it is not part of a word, or it ends an escape (`\n`, `\u0022`, `%3D`)
 * or an ANSI colour code.
 */
function isBoundary(text: string, at: number): boolean {
  if (at === 0) return true
  if (!/[A-Za-z0-9_]/.test(text[at - 1]!)) return true
  return /(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-F]{2}|\[[\d;]{0,12}m|\\x[0-9a-f]{2})$/.test(
    text.slice(Math.max(0, at - 16), at),
  )
}

const FOLLOWING_CHARACTERS = /[A-Za-z0-9]+/y

/** Includes letters and digits directly after a token, because issuers make their tokens longer. */
function extendedEnd(text: string, end: number): number {
  return Math.max(end, matchEnd(FOLLOWING_CHARACTERS, text, end))
}

/** A prefix that an editor, a diff or grep adds to a line. */
const LINE_PREFIX = "(?:[ \\t]{0,10}\\d{1,6}(?:\u2192|\\t|: ?| ?\\| ?)|[\\w./-]{1,100}[:-]\\d{1,6}[:-]|[+>|-] ?)?"
const QUOTE = "(?:\\\\{0,8}[\"'`])"
const LINE = `(?:\\r?\\n|(?:\\\\{1,8}r)?\\\\{1,8}n)${LINE_PREFIX}[ \\t]{0,40}`
/** A break inside a token: a line break, or two concatenated strings, on one line or two. */
const FOLD = new RegExp(
  `\\\\?${LINE}|${QUOTE}[ \\t]{0,4}[+.&\\\\]?[ \\t]{0,4}${LINE}${QUOTE}|${QUOTE}\\s{0,4}\\+?\\s{0,40}${QUOTE}`,
  "y",
)
/** A break between lines with a common prefix, as in a log. */
const STRING_END_AND_BREAK = new RegExp(`(?:${QUOTE}[ \\t]{0,4}[+.&]?[ \\t]{0,4})?\\r?\\n`, "y")
const STRING_START = new RegExp(`[ \\t]{0,40}${QUOTE}`, "y")

/** Returns the position at which a token continues after a break, or -1 if there is no break here. */
function foldEnd(text: string, at: number): number {
  const next = matchEnd(STRING_END_AND_BREAK, text, at)
  const line = next === -1 ? 0 : text.lastIndexOf("\n", at - 1) + 1
  let prefixLength = 0
  if (next !== -1)
    while (prefixLength < 120 && line + prefixLength < at && text[line + prefixLength] === text[next + prefixLength])
      prefixLength++
  while (prefixLength > 0 && isRunCode[text.charCodeAt(next + prefixLength - 1)] === 1) prefixLength--
  if (prefixLength < MIN_COMMON_PREFIX) return matchEnd(FOLD, text, at)
  return text.charCodeAt(at) === NEWLINE ? next + prefixLength : matchEnd(STRING_START, text, next + prefixLength)
}

/** The minimum length of a prefix that two lines share. Indentation is usually shorter. */
const MIN_COMMON_PREFIX = 6

const MAX_PIECES = 12
const MAX_PIECE_LENGTH = 400

/** Whether a token may continue after a break: its first piece is followed by a newline, a quote, or an escape of either. */
function mayFold(text: string, at: number, runStop: number): boolean {
  const length = runStop - at
  if (length < 16 || length > MAX_PIECE_LENGTH || !/[\r\n\\"']/.test(text[runStop] ?? "")) return false
  return looksRandom(text.slice(at + 3, runStop), 8, 0.12)
}

/** Matches a token that was broken by a terminal, an email or a line of code, by joining its pieces. */
function matchFolded(text: string, at: number, keys: Key[]): Span | undefined {
  let joined = ""
  const pieces: { from: number; length: number }[] = []
  for (let from = at; pieces.length < 4; ) {
    const end = pieceEnd(text, from)
    if (end === from || end - from > MAX_PIECE_LENGTH) break
    pieces.push({ from, length: end - from })
    joined += text.slice(from, end)
    const next = foldEnd(text, end)
    if (next === -1) break
    from = next
  }
  if (pieces.length < 2) return undefined
  for (const { key, rule, encoded } of keys) {
    if (encoded !== undefined || rule.encodedOnly || rule.back || (rule.boundary && !isBoundary(text, at))) continue
    const stop = matchEnd(rule.token, joined, 0)
    if (stop === -1 || !isRealToken(rule, key, joined.slice(0, stop))) continue
    if (!looksRandom(joined.slice(0, stop), MIN_PIECE_LENGTH)) continue
    let remaining = stop
    for (const piece of pieces) {
      if (remaining <= piece.length) return { start: at, end: piece.from + remaining, rule: rule.name }
      remaining -= piece.length
    }
  }
  return undefined
}

/** Returns the end of a token that matched up to the end of its line and continues on the next lines. */
function foldedEnd(text: string, stop: number): number {
  let end = stop
  for (let piece = 0; piece < MAX_PIECES; piece++) {
    const next = foldEnd(text, end)
    if (next === -1) return end
    const nextEnd = pieceEnd(text, next)
    if (!isTokenPiece(text.slice(next, nextEnd)) || /[^\s"'\\`,;)]/.test(text[nextEnd] ?? " ")) return end
    end = nextEnd
  }
  return end
}

/** Whether a piece continues a token. The last piece can be short, but a word of the next line must not be mistaken for one. */
function isTokenPiece(piece: string): boolean {
  return (
    looksRandom(piece, 16) ||
    (piece.length >= 4 && /^[A-Za-z0-9_=-]*$/.test(piece) && /\d/.test(piece) && /[A-Za-z]/.test(piece))
  )
}

function searchEdge(text: string, start: number, spans: Span[]): void {
  const mark = start === 0 ? 0 : text.charCodeAt(start - 1)
  for (const rule of rulesByEdge.get(mark) ?? NO_RULES) {
    const end = matchEnd(rule.token, text, start)
    const lead = end === -1 ? undefined : rule.before.exec(text.slice(Math.max(0, start - 40), start))
    if (!lead || !looksRandom(text.slice(start, end), 16, 0.12)) continue
    spans.push({ start: start - lead[0].length, end, rule: rule.name })
  }
  const escapeLength = mark === BACKSLASH ? (text[start] === "u" ? 5 : 1) : 0
  const first = start + (text[start] === "-" ? 1 : escapeLength)
  if (isShapeStart[text.charCodeAt(first)] !== 1) return
  for (const rule of RUN_RULES) {
    const end = matchEnd(rule.token, text, first)
    if (end !== -1 && looksRandom(text.slice(first, end), MIN_PIECE_LENGTH))
      spans.push({ start: first, end, rule: rule.name })
  }
}

const rulesByEdge = Map.groupBy(EDGE_RULES, (rule) => rule.edge.charCodeAt(0))
const NO_RULES: typeof EDGE_RULES = []
const BACKSLASH = 92
const isShapeStart = new Uint8Array(128)
for (const rule of RUN_RULES) for (const c of rule.first) isShapeStart[c.charCodeAt(0)] = 1

const AWS_KEY_RULE = "aws-access-key"
const AWS_SECRET = /(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/g

/** Finds the secret half of an AWS key pair, which has no recognisable form, next to its id. */
function searchAwsSecret(text: string, from: number, spans: Span[]): void {
  const following = text.slice(from, from + 160)
  for (const match of following.matchAll(AWS_SECRET)) {
    if (!looksRandom(match[0], 40)) continue
    spans.push({ start: from + match.index, end: from + match.index + 40, rule: "aws-secret-key" })
  }
}

/** `encoded` is set if the key is a base64 form of the mark. */
type Key = { key: string; rule: TokenRule; encoded?: Base64Form["before"] }

function groupByStart(rules: TokenRule[]): Map<number, Key[]> {
  const groups = new Map<number, Key[]>()
  const add = (key: Key) => {
    const [a, b, c] = [0, 1, 2].map((at) => key.key.charCodeAt(at) & 63) as [number, number, number]
    const start = (a << 12) | (b << 6) | c
    const group = groups.get(start)
    if (group) group.push(key)
    else groups.set(start, [key])
  }
  for (const rule of rules) {
    for (const key of rule.keys.split(" ")) {
      add({ key, rule })
      if (key.length >= 4 && !rule.back) {
        for (const { form, before } of base64Forms(key)) add({ key: form, rule, encoded: before })
      }
    }
  }
  return groups
}
