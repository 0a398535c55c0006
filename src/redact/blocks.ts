import { PRIVATE_KEY_RULE, PRIVATE_RULE, type Span } from "./rules.ts"

// Finds secrets with a beginning and an end: text marked as private, and private keys. Both scanners read any text only once; a
// lazy regex between two tags would be quadratic on repeated tags.

export function findBlocks(text: string, spans: Span[]): void {
  findPrivateText(text, spans)
  if (text.includes("PRIVATE KEY")) findPemKeys(text, spans)
  if (text.includes("Private-Lines")) findPuttyKeys(text, spans)
  if (text.includes("OpenVPN Static key")) findStaticKeys(text, spans)
}

const PRIVATE_TAG = /(?:<|\\+u003c|&lt;)(\/?)private(?:\s+[\w-]+\s*=[^<>\n]{0,200}|\s*)(?:>|\\+u003e|&gt;)/gi

/** Finds private blocks. Nested blocks count as one; an unclosed block extends to the end of the text. */
function findPrivateText(text: string, spans: Span[]): void {
  let depth = 0
  let start = 0
  PRIVATE_TAG.lastIndex = 0
  for (let tag = PRIVATE_TAG.exec(text); tag; tag = PRIVATE_TAG.exec(text)) {
    if (isCode(text, tag)) continue
    if (tag[1] === "") {
      if (depth === 0) start = tag.index
      depth++
    } else if (depth > 0) {
      depth--
      if (depth === 0) spans.push({ start, end: PRIVATE_TAG.lastIndex, rule: PRIVATE_RULE })
    }
  }
  if (depth > 0) spans.push({ start, end: text.length, rule: PRIVATE_RULE })
}

/**
 * Whether a tag is part of code, such as `List<Private>`, and does not mark private text. A person who marks a secret writes the
 * tag separately or in lower case.
 */
function isCode(text: string, tag: RegExpExecArray): boolean {
  return tag[0].includes("P") && /[A-Za-z]/.test(text[tag.index - 1] ?? "")
}

const KEY_BEGIN = /-----BEGIN ((?:[A-Z0-9]{2,12} ){0,3}?)PRIVATE KEY(?: BLOCK)?-----/g
const KEY_END = /-----END (?:[A-Z0-9]{2,12} ){0,3}?PRIVATE KEY(?: BLOCK)?-----/g
/** The maximum number of characters between the first and the last line of a key. A PGP key ring can be large. */
const MAX_KEY_LENGTH = 200_000
const ONE_BASE64_LINE = /[A-Za-z0-9+/]{32}/
/** Matches the lines of a key, also inside JSON (`\n`), a diff (`+`), numbered lines and a quoted mail. */
const KEY_BODY = /(?:[A-Za-z0-9+/=\s\\"',:>|→│.-]){0,20000}/y

function findPemKeys(text: string, spans: Span[]): void {
  KEY_BEGIN.lastIndex = 0
  KEY_END.lastIndex = 0
  let endMatch = KEY_END.exec(text)
  let previousEnd = 0
  for (let beginMatch = KEY_BEGIN.exec(text); beginMatch; beginMatch = KEY_BEGIN.exec(text)) {
    const bodyStart = KEY_BEGIN.lastIndex
    while (endMatch && endMatch.index < bodyStart) {
      findKeyEnding(text, previousEnd, endMatch, spans)
      previousEnd = KEY_END.lastIndex
      endMatch = KEY_END.exec(text)
    }
    if (
      endMatch &&
      endMatch.index - bodyStart < MAX_KEY_LENGTH &&
      ONE_BASE64_LINE.test(withoutBreaks(text.slice(bodyStart, endMatch.index)))
    ) {
      spans.push({ start: beginMatch.index, end: KEY_END.lastIndex, rule: PRIVATE_KEY_RULE })
      KEY_BEGIN.lastIndex = previousEnd = KEY_END.lastIndex
      endMatch = KEY_END.exec(text)
    } else if (!endMatch) {
      KEY_BODY.lastIndex = bodyStart
      KEY_BODY.test(text)
      const linesEnd = keyLinesEnd(text, bodyStart)
      const stop = linesEnd > bodyStart ? linesEnd : Math.max(KEY_BODY.lastIndex, bodyStart)
      if (ONE_BASE64_LINE.test(withoutBreaks(text.slice(bodyStart, stop)))) {
        spans.push({ start: beginMatch.index, end: stop, rule: PRIVATE_KEY_RULE })
      }
      KEY_BEGIN.lastIndex = previousEnd = stop
    }
  }
  while (endMatch) {
    findKeyEnding(text, previousEnd, endMatch, spans)
    previousEnd = KEY_END.lastIndex
    endMatch = KEY_END.exec(text)
  }
}

const LINE_BREAK = /\r?\n|(?:\\{1,8}r)?\\{1,8}n/g
/** The minimum length of a full line of a key. The last line can be shorter. */
const MIN_LINE_LENGTH = 40
/** The maximum length of a line, including the text before the base64. */
const MAX_LINE_LENGTH = 512
const MAX_LINES = 4_000

type Base64Range = { start: number; end: number }

/**
 * Finds the end of a key whose beginning was cut off, as `tail` shows it. Each line ends in base64. Any prefix may precede it: a
 * number, a log's time, an email's quotation mark or, in the first line, other text.
 */
function findKeyEnding(text: string, from: number, end: RegExpExecArray, spans: Span[]): void {
  const minStart = Math.max(from, end.index - 20_000)
  const textBefore = text.slice(minStart, end.index)
  const lineEnds: Base64Range[] = []
  let lineStart = 0
  for (const lineBreak of textBefore.matchAll(LINE_BREAK)) {
    lineEnds.push(base64AtEnd(textBefore, lineStart, lineBreak.index))
    lineStart = lineBreak.index + lineBreak[0].length
  }
  const lastLine = base64AtEnd(textBefore, lineStart, textBefore.length)
  // The text directly before the END marker is a log's prefix, or the end of a key without line breaks.
  if (lastLine.end - lastLine.start >= MIN_LINE_LENGTH) lineEnds.push(lastLine)
  const fromLastLine = lineEnds.reverse()
  let lineCount = 0
  // Only the last line of a key can be short.
  while (
    lineCount < fromLastLine.length &&
    fromLastLine[lineCount]!.end - fromLastLine[lineCount]!.start >= (lineCount === 0 ? 1 : MIN_LINE_LENGTH)
  )
    lineCount++
  const firstRange = fromLastLine[lineCount - 1]
  if (!firstRange || firstRange.end - firstRange.start < MIN_LINE_LENGTH) return
  spans.push({ start: minStart + firstRange.start, end: end.index + end[0].length, rule: PRIVATE_KEY_RULE })
}

/** Returns the end of a key whose lines continue here, or `from` if none do. Each line of a key ends in base64. */
export function keyLinesEnd(text: string, from: number): number {
  let end = from
  let prefix = -1
  let at = from
  for (let lineIndex = 0; lineIndex < MAX_LINES; lineIndex++) {
    const line = text.slice(at, at + MAX_LINE_LENGTH)
    LINE_BREAK.lastIndex = 0
    const lineBreak = LINE_BREAK.exec(line)
    const stop = lineBreak?.index ?? line.length
    const base64 = base64AtEnd(line, 0, stop)
    const size = base64.end - base64.start
    if (size >= MIN_LINE_LENGTH) {
      end = at + base64.end
      prefix = base64.start
    } else if (prefix === -1) {
      if (lineIndex > 8 || !KEY_HEADER.test(line.slice(0, stop))) return end
    } else {
      const last = /^[A-Za-z0-9+/]*={0,2}/.exec(line.slice(prefix, stop))?.[0] ?? ""
      return LAST_LINE.test(last) ? at + prefix + last.length : end
    }
    if (!lineBreak) return end
    at += LINE_BREAK.lastIndex
  }
  return end
}

/** Matches a line between the first line of a key and its base64. */
const KEY_HEADER = /^[^A-Za-z]{0,40}$|(?:Proc-Type|DEK-Info|Version|Comment|Hash): /
/** Matches the last line of a key. A shorter word could also be the beginning of the text after the key. */
const LAST_LINE = /=$|^(?=.*\d)(?=.*[A-Z]).{8}/

/** Finds the base64 at the end of a line. */
function base64AtEnd(text: string, start: number, end: number): Base64Range {
  const tail = text.slice(Math.max(start, end - 12), end)
  const stop = end - (/(?:["'`],?;?)?\s*\+?\s*\\*$/.exec(tail.replace(/[A-Za-z0-9/=]\+$/, "=="))?.[0].length ?? 0)
  let at = stop
  while (at > start && text[at - 1] === "=" && stop - at < 2) at--
  while (at > start && isBase64[text.charCodeAt(at - 1)] === 1) at--
  return { start: at, end: stop }
}

const isBase64 = new Uint8Array(1 << 16)
for (const c of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") isBase64[c.charCodeAt(0)] = 1

/**
 * Joins the lines of a key. It may be broken at any width, and each break may be a newline, its escape, or code that concatenates
 * strings.
 */
function withoutBreaks(body: string): string {
  return body.replace(/\\+[nr]|[\s"'+>|→│\\]/g, "")
}

function findPuttyKeys(text: string, spans: Span[]): void {
  for (const header of text.matchAll(/Private-Lines: \d{1,4}/g)) {
    const start = header.index + header[0].length
    const end = keyLinesEnd(text, start)
    if (end > start) spans.push({ start, end, rule: PRIVATE_KEY_RULE })
  }
}

/** Matches a key whose lines consist of hexadecimal digits. Each line may have a prefix, such as a line number. */
const STATIC_KEY =
  /-----BEGIN OpenVPN Static key V1-----((?:(?:\r?\n|\\{1,8}n)[^A-Za-z0-9\n\\]{0,12}(?:\d{1,5}[^A-Za-z0-9\n\\]{1,4})?[0-9a-f]{8,64}){1,32})/g

function findStaticKeys(text: string, spans: Span[]): void {
  for (const key of text.matchAll(STATIC_KEY)) {
    const end = key.index + key[0].length
    spans.push({ start: end - key[1]!.length, end, rule: PRIVATE_KEY_RULE })
  }
}
