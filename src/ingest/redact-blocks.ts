import { PRIVATE, PRIVATE_KEY, type Span } from "./redact-rules.ts"

// Secrets that have a beginning and an end: what a person marked as private, and private keys. Both scanners go over
// the text once, whatever it holds: a lazy regex between two tags is quadratic on repeated tags.

export function findBlocks(text: string, spans: Span[]): void {
  findPrivate(text, spans)
  if (text.includes("PRIVATE KEY")) findPem(text, spans)
  if (text.includes("Private-Lines")) findPutty(text, spans)
}

const TAG = /(?:<|\\+u003c|&lt;)(\/?)private(?:\s+[\w-]+\s*=[^<>\n]{0,200}|\s*)(?:>|\\+u003e|&gt;)/gi

/** Nested blocks count as one; a block that is never closed goes to the end of the text. */
function findPrivate(text: string, spans: Span[]): void {
  let depth = 0
  let start = 0
  TAG.lastIndex = 0
  for (let tag = TAG.exec(text); tag; tag = TAG.exec(text)) {
    if (isMarkup(text, tag)) continue
    if (tag[1] === "") {
      if (depth === 0) start = tag.index
      depth++
    } else if (depth > 0) {
      depth--
      if (depth === 0) spans.push({ start, end: TAG.lastIndex, rule: PRIVATE })
    }
  }
  if (depth > 0) spans.push({ start, end: text.length, rule: PRIVATE })
}

/** `B<Private>` and `List<Private>` are code; a person who marks a secret writes the tag apart or in small letters. */
function isMarkup(text: string, tag: RegExpExecArray): boolean {
  return tag[0].includes("P") && /[A-Za-z]/.test(text[tag.index - 1] ?? "")
}

const BEGIN = /-----BEGIN ((?:[A-Z0-9]{2,12} ){0,3}?)PRIVATE KEY(?: BLOCK)?-----/g
const END = /-----END (?:[A-Z0-9]{2,12} ){0,3}?PRIVATE KEY(?: BLOCK)?-----/g
/** Longest text between the two lines of a key: a PGP key ring can be large. */
const MAX_KEY = 200_000
const ONE_BASE64_LINE = /[A-Za-z0-9+/]{32}/
/** What a key's lines are made of, also inside JSON (`\n`), a diff (`+`), numbered lines and a quoted mail. */
const KEY_BODY = /(?:[A-Za-z0-9+/=\s\\"',:>|→│.-]){0,20000}/y

function findPem(text: string, spans: Span[]): void {
  BEGIN.lastIndex = 0
  END.lastIndex = 0
  let end = END.exec(text)
  let last = 0
  for (let begin = BEGIN.exec(text); begin; begin = BEGIN.exec(text)) {
    const body = BEGIN.lastIndex
    while (end && end.index < body) {
      findKeyEnding(text, last, end, spans)
      last = END.lastIndex
      end = END.exec(text)
    }
    if (end && end.index - body < MAX_KEY && ONE_BASE64_LINE.test(withoutBreaks(text.slice(body, end.index)))) {
      spans.push({ start: begin.index, end: END.lastIndex, rule: PRIVATE_KEY })
      BEGIN.lastIndex = last = END.lastIndex
      end = END.exec(text)
    } else if (!end) {
      KEY_BODY.lastIndex = body
      KEY_BODY.test(text)
      const stop = Math.max(KEY_BODY.lastIndex, body)
      if (ONE_BASE64_LINE.test(withoutBreaks(text.slice(body, stop)))) {
        spans.push({ start: begin.index, end: stop, rule: PRIVATE_KEY })
      }
      BEGIN.lastIndex = last = stop
    }
  }
  while (end) {
    findKeyEnding(text, last, end, spans)
    last = END.lastIndex
    end = END.exec(text)
  }
}

/** The end of a key whose beginning was cut off, as `tail` shows it: whole lines of base64 before the last line. */
function findKeyEnding(text: string, from: number, end: RegExpExecArray, spans: Span[]): void {
  const floor = Math.max(from, end.index - 20_000)
  const before = text.slice(floor, end.index)
  let start = before.length
  for (let lineEnd = before.length; lineEnd > 0; ) {
    const newline = before.lastIndexOf("\n", lineEnd - 1)
    if (newline === -1) break
    const line = before.slice(newline + 1, lineEnd)
    if (line !== "" && !/^[\s+>|\d→│]{0,16}[A-Za-z0-9+/]{1,120}={0,2}\r?$/.test(line)) break
    if (line.length >= 40) start = newline + 1
    lineEnd = newline
  }
  if (start === before.length) return
  spans.push({ start: floor + start, end: end.index + end[0].length, rule: PRIVATE_KEY })
}

/** A key may be folded at any width, and each break may be a newline, its escape, or code that glues strings. */
function withoutBreaks(body: string): string {
  return body.replace(/\\+[nr]|[\s"'+>|→│\\]/g, "")
}

function findPutty(text: string, spans: Span[]): void {
  const HEADER = /Private-Lines: \d{1,4}/g
  const LINES = /(?:(?:\\+r)?(?:\\+n|\r?\n)[A-Za-z0-9+/=]{1,80})+/y
  for (let header = HEADER.exec(text); header; header = HEADER.exec(text)) {
    LINES.lastIndex = HEADER.lastIndex
    if (!LINES.test(text)) continue
    spans.push({ start: HEADER.lastIndex, end: LINES.lastIndex, rule: PRIVATE_KEY })
    HEADER.lastIndex = LINES.lastIndex
  }
}
