import { EDGE_RULES, RUN_RULES, type Span, TOKEN_RULES, type TokenRule } from "./redact-rules.ts"
import { hasManyCharacters, looksRandom } from "./redact-values.ts"

// Tokens that name their issuer. Every one of them holds a run of at least 20 characters of one alphabet, and such runs
// are rare; so the text is first probed at every 20th character, and only runs are searched for the issuers' marks.

const MIN_RUN = 20

const isRunCode = new Uint8Array(1 << 16)
for (const c of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~") isRunCode[c.charCodeAt(0)] = 1

const keysByStart = groupByStart(TOKEN_RULES)
/** Indexed by three characters of 7 bits: whether a key begins so. */
const isStart = new Uint8Array(1 << 21)
for (const start of keysByStart.keys()) {
  isStart[(start.charCodeAt(0) << 14) | (start.charCodeAt(1) << 7) | start.charCodeAt(2)] = 1
}

export function findTokens(text: string, spans: Span[]): void {
  const length = text.length
  for (let start = nextRun(text, 0); start !== -1; ) {
    searchEdge(text, start, spans)
    let end = start
    let three = 0
    let stop = -1
    for (; end < length; end++) {
      const code = text.charCodeAt(end)
      if (isRunCode[code] === 0) break
      three = ((three << 7) | code) & 0x1fffff
      if (isStart[three] === 0) continue
      if (stop < end) stop = runEnd(text, end)
      const span = matchRules(text, end - 2, stop)
      if (!span) continue
      if (span.rule !== SHOWN) spans.push(span)
      if (span.rule === AWS_KEY) searchAwsSecret(text, span.end, spans)
      end = span.end - 1
      three = 0
    }
    start = nextRun(text, end + 1)
  }
}

/** Where the next run begins: of any 20 characters in a row that are not all of the alphabet, the last such tells. */
function nextRun(text: string, from: number): number {
  const length = text.length
  let start = from
  while (start + MIN_RUN <= length) {
    let probe = start + MIN_RUN - 1
    while (probe >= start && isRunCode[text.charCodeAt(probe)] === 1) probe--
    if (probe < start) return start
    start = probe + 1
  }
  return -1
}

function runEnd(text: string, from: number): number {
  let end = from
  while (end < text.length && isRunCode[text.charCodeAt(end)] === 1) end++
  return end
}

function keysAt(text: string, at: number): Key[] {
  return keysByStart.get(text.slice(at, at + 3)) ?? []
}

function matchRules(text: string, at: number, runStop: number): Span | undefined {
  const keys = keysAt(text, at).filter(({ key }) => text.startsWith(key, at))
  if (keys.length === 0) return undefined
  for (const { key, rule } of keys) {
    const start = at - (rule.back ?? 0)
    if (start < 0 || (rule.boundary && !isBoundary(text, start))) continue
    const end = matchEnd(rule.token, text, start)
    if (end === -1) continue
    const token = text.slice(start, end)
    if (!hasManyCharacters(token)) return { start, end, rule: SHOWN }
    if (isReal(rule, key, token)) return { start, end: foldedEnd(text, wholeEnd(text, end)), rule: rule.name }
  }
  const isFolded = matchEnd(FOLD, text, runStop) !== -1 && mayFold(text, at, runStop)
  return isFolded ? matchFolded(text, at, keys) : undefined
}

/** Not a rule: `xxxx…` after an issuer's mark shows a token's form. Nothing in it is looked at again. */
const SHOWN = ""

function isReal(rule: TokenRule, key: string, token: string): boolean {
  if (token.endsWith("EXAMPLE")) return false
  return !rule.random || looksRandom(token.slice(key.length), 8, 0.12)
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}

/**
 * The characters of a word do not run on to the left, or what looks like them is an escape (`\n`, `\u0022`, `%3D`) or
 * a terminal's colour.
 */
function isBoundary(text: string, at: number): boolean {
  if (at === 0) return true
  if (!/[A-Za-z0-9_]/.test(text[at - 1]!)) return true
  return /(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-F]{2}|\[[\d;]{0,12}m|\\x[0-9a-f]{2})$/.test(
    text.slice(Math.max(0, at - 16), at),
  )
}

const REST = /[A-Za-z0-9]+/y

/** What is glued to a token is a part of it: issuers make their tokens longer. */
function wholeEnd(text: string, end: number): number {
  return Math.max(end, matchEnd(REST, text, end))
}

const FOLD = /\\?(?:\r?\n|(?:\\r)?\\n)[ \t]{0,40}(?:[>|+] ?)?|["']\s{0,4}\+?\s{0,40}["']/y
const MAX_PIECES = 12
const MAX_PIECE = 400

/** The first piece of a folded token ends in a newline or a quote, or in their escapes. */
function mayFold(text: string, at: number, runStop: number): boolean {
  const length = runStop - at
  if (length < 16 || length > MAX_PIECE || !/[\r\n\\"']/.test(text[runStop] ?? "")) return false
  return (
    looksRandom(text.slice(at + 3, runStop), 8, 0.12) && keysAt(text, at).some(({ key }) => text.startsWith(key, at))
  )
}

/** A token that a terminal, a mail or a line of code broke: its pieces are read as one. */
function matchFolded(text: string, at: number, keys: Key[]): Span | undefined {
  let joined = ""
  const pieces: { from: number; length: number }[] = []
  for (let from = at; pieces.length < 4; ) {
    const end = runEnd(text, from)
    if (end === from || end - from > MAX_PIECE) break
    pieces.push({ from, length: end - from })
    joined += text.slice(from, end)
    const next = matchEnd(FOLD, text, end)
    if (next === -1) break
    from = next
  }
  if (pieces.length < 2) return undefined
  for (const { key, rule } of keys) {
    if (rule.back || (rule.boundary && !isBoundary(text, at))) continue
    const stop = matchEnd(rule.token, joined, 0)
    if (stop === -1 || !isReal(rule, key, joined.slice(0, stop))) continue
    if (!looksRandom(joined.slice(0, stop), MIN_RUN)) continue
    let left = stop
    for (const piece of pieces) {
      if (left <= piece.length) return { start: at, end: piece.from + left, rule: rule.name }
      left -= piece.length
    }
  }
  return undefined
}

/** Where a token that matched up to the end of its line goes on in the next ones. */
function foldedEnd(text: string, stop: number): number {
  let end = stop
  for (let piece = 0; piece < MAX_PIECES; piece++) {
    const next = matchEnd(FOLD, text, end)
    if (next === -1) return end
    const nextEnd = runEnd(text, next)
    if (!isTokenPiece(text.slice(next, nextEnd)) || /[^\s"'\\`,;)]/.test(text[nextEnd] ?? " ")) return end
    end = nextEnd
  }
  return end
}

/** The last piece can be short; a word of the next line must not be taken for one. */
function isTokenPiece(piece: string): boolean {
  return (
    looksRandom(piece, 16) ||
    (piece.length >= 4 && /^[A-Za-z0-9_=-]*$/.test(piece) && /\d/.test(piece) && /[A-Za-z]/.test(piece))
  )
}

function searchEdge(text: string, start: number, spans: Span[]): void {
  const mark = start === 0 ? 0 : text.charCodeAt(start - 1)
  if (mark === COLON || mark === SLASH) {
    for (const rule of EDGE_RULES) {
      const end = matchEnd(rule.token, text, start)
      const lead = end === -1 ? undefined : rule.before.exec(text.slice(Math.max(0, start - 40), start))
      if (lead) spans.push({ start: start - lead[0].length, end, rule: rule.name })
    }
  }
  const first = mark === BACKSLASH ? start + (text[start] === "u" ? 5 : 1) : start
  if (isShapeStart[text.charCodeAt(first)] !== 1) return
  for (const rule of RUN_RULES) {
    const end = matchEnd(rule.token, text, first)
    if (end !== -1 && looksRandom(text.slice(first, end), MIN_RUN)) spans.push({ start: first, end, rule: rule.name })
  }
}

const COLON = 58
const SLASH = 47
const BACKSLASH = 92
const isShapeStart = new Uint8Array(128)
for (const rule of RUN_RULES) for (const c of rule.first) isShapeStart[c.charCodeAt(0)] = 1

const AWS_KEY = "aws-access-key"
const AWS_SECRET = /(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/g

/** The other half of the pair, which has no form of its own, is written next to its id. */
function searchAwsSecret(text: string, from: number, spans: Span[]): void {
  const near = text.slice(from, from + 160)
  for (const match of near.matchAll(AWS_SECRET)) {
    if (!looksRandom(match[0], 40)) continue
    spans.push({ start: from + match.index, end: from + match.index + 40, rule: "aws-secret-key" })
  }
}

type Key = { key: string; rule: TokenRule }

/** The keys by their first three characters. */
function groupByStart(rules: TokenRule[]): Map<string, Key[]> {
  const groups = new Map<string, Key[]>()
  for (const rule of rules) {
    for (const key of rule.keys.split(" ")) {
      const start = key.slice(0, 3)
      groups.set(start, [...(groups.get(start) ?? []), { key, rule }])
    }
  }
  return groups
}
