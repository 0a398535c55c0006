import { limitJsonValues } from "./record.ts"

// Reads JSON without holding all of it: first the items of a list in a file of any size, then the members of an item.

const [QUOTE, COMMA, COLON, BACKSLASH] = [34, 44, 58, 92]
const [OPENING_BRACKET, OPENING_BRACE, CLOSING_BRACKET, CLOSING_BRACE] = [91, 123, 93, 125]

/** The reason why a text cannot be read as a list, phrased so that it fits into a sentence. */
export class BadList extends Error {}

/** Short texts can contain many values, which need more memory than their text once they are parsed. */
export type ItemLimits = { bytes: number; values: number }

/**
 * Yields the items of the list in a JSON file, each as its text. Holds one item. The text of an item beyond the limits is
 * undefined. Throws a BadList if the text is not a list, or if its end is missing, after the items up to there.
 */
export async function* itemsOfList(
  chunks: AsyncIterable<Buffer>,
  limits: ItemLimits,
): AsyncGenerator<{ text: string | undefined; bytes: number }> {
  let depth = 0
  let inString = false
  let isEscaped = false
  let hasEnded = false
  let isStart = true
  let pieces: Buffer[] = []
  let bytes = 0
  let values = 0
  const isTooLarge = () => bytes > limits.bytes || values > limits.values
  const add = (piece: Buffer) => {
    bytes += piece.length
    if (isTooLarge()) pieces = []
    else pieces.push(piece)
  }
  const takeItem = () => {
    const item = { text: isTooLarge() ? undefined : Buffer.concat(pieces).toString("utf8").trim(), bytes }
    pieces = []
    bytes = 0
    values = 0
    return item
  }
  for await (const chunk of chunks) {
    if (hasEnded) continue // read to the end, so that the caller can check the rest
    let from = isStart && chunk.length >= 3 && chunk.readUIntBE(0, 3) === 0xefbbbf ? 3 : 0
    for (let i = from; i < chunk.length && !hasEnded; i++) {
      const code = chunk[i]!
      if (inString) {
        if (isEscaped) isEscaped = false
        else if (code === BACKSLASH) isEscaped = true
        else if (code === QUOTE) inString = false
      } else if (depth === 0) {
        if (isBlank(code)) continue
        if (code !== OPENING_BRACKET) throw new BadList("is not a list in JSON")
        depth = 1
        from = i + 1
      } else if (code === QUOTE) inString = true
      else if (code === COMMA) values++
      else if (code === OPENING_BRACKET || code === OPENING_BRACE) {
        depth++
        values++
      } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) {
        depth--
        hasEnded = depth === 0
      }
      if (hasEnded || (code === COMMA && depth === 1 && !inString)) {
        add(chunk.subarray(from, i))
        const item = takeItem()
        if (item.text !== "") yield item
        from = i + 1
      }
    }
    if (depth > 0) add(chunk.subarray(from))
    isStart = false
  }
  if (!hasEnded) throw new BadList(depth > 0 ? "is incomplete: its end is missing" : "is not a list in JSON")
}

/**
 * Yields the members of a JSON object, each with its name and its text, or the items of a list without a name. Nothing is parsed
 * but names, so that an object with many members needs little memory. Throws a SyntaxError if the text is neither.
 */
export function* membersOf(text: string): Generator<[name: string | undefined, value: string]> {
  const isObject = text.charCodeAt(0) === OPENING_BRACE
  if (!isObject && text.charCodeAt(0) !== OPENING_BRACKET) throw new SyntaxError("neither an object nor a list")
  for (let at = skipBlanks(text, 1); !isClosing(text.charCodeAt(at)); at = skipBlanks(text, at + 1)) {
    let name: string | undefined
    if (isObject) {
      const end = endOfValue(text, at, COLON)
      name = String(JSON.parse(text.slice(at, end)))
      at = skipBlanks(text, end + 1)
    }
    const end = endOfValue(text, at, COMMA)
    yield [name, text.slice(at, end).trimEnd()]
    at = end
    if (isClosing(text.charCodeAt(at))) return
  }
}

/** Parses the text of a value, like `parseObject`. Throws a SyntaxError. */
export function parseValue(text: string): unknown {
  return JSON.parse(limitJsonValues(text))
}

/** Returns the position of the separator, or of the bracket that closes the container. */
function endOfValue(text: string, from: number, separator: number): number {
  let depth = 0
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      for (i++; i < text.length && text.charCodeAt(i) !== QUOTE; i++) if (text.charCodeAt(i) === BACKSLASH) i++
    } else if (code === OPENING_BRACKET || code === OPENING_BRACE) depth++
    else if (depth === 0 && (code === separator || isClosing(code))) return i
    else if (isClosing(code)) depth--
  }
  throw new SyntaxError("incomplete")
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (isBlank(text.charCodeAt(at))) at++
  if (at >= text.length) throw new SyntaxError("incomplete")
  return at
}

function isBlank(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}

function isClosing(code: number): boolean {
  return code === CLOSING_BRACKET || code === CLOSING_BRACE
}
