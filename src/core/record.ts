// Readers for fields of records that other programs wrote. If the value has the wrong type, they return undefined, or an empty
// list if they read a list.

/** A record that another program wrote. Any field may be missing or have the wrong type. */
export type RawRecord = Record<string, unknown>

export function isRecord(value: unknown): value is RawRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

export function parseObject(text: string): RawRecord | undefined {
  try {
    const value: unknown = JSON.parse(limitJsonValues(text))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined // the caller counts damaged records
  }
}

export function parseArray(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(limitJsonValues(text))
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined // the caller counts damaged records
  }
}

/** Returns undefined for an empty string, too. */
export function string(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined
}

export function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined
}

export function record(value: unknown): RawRecord | undefined {
  return isRecord(value) ? value : undefined
}

export function array(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export function records(value: unknown): RawRecord[] {
  return array(value).filter(isRecord)
}

/** The latest time that a Date can represent, in milliseconds. Printing a later one throws. */
const LATEST_MS = 8.64e15

/** Returns true if a stored value is a time that can be shown. */
export function isValidTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= LATEST_MS
}

/** Converts an ISO string, or a number of seconds or milliseconds, to milliseconds since 1970. */
export function time(value: unknown): number | undefined {
  if (typeof value === "number") {
    if (!Number.isFinite(value) || value <= 0) return undefined
    const ms = Math.round(value < 1e11 ? value * 1000 : value)
    return ms <= LATEST_MS ? ms : undefined
  }
  if (typeof value !== "string") return undefined
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : at
}

/**
 * The deepest nesting of JSON that dex reads. JSON.parse accepts a million levels, but code that walks or prints the result
 * overflows at 5,000.
 */
export const MAX_DEPTH = 200

export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object" && isDeeperThan(item, levels - 1)) return true
    return false
  }
  for (const key in value) {
    const field = (value as RawRecord)[key]
    if (typeof field === "object" && isDeeperThan(field, levels - 1)) return true
  }
  return false
}

const QUOTE = 34
const COMMA = 44
const BACKSLASH = 92
const OPENING_BRACKETS = new Set([91, 123]) // the character codes of [ and {
const CLOSING_BRACKETS = new Set([93, 125]) // the character codes of ] and }

/** Shorter texts are not checked, because they need little memory however many values they contain. */
const MIN_CHECKED_CHARS = 64 << 10
/**
 * The maximum number of values in one list or object. Once parsed, a list of points or pixels needs 20 times the memory of its
 * text; no conversation needs more values than this.
 */
export const MAX_VALUES = 20_000
const MAX_SHOWN_CHARS = 100

/**
 * Takes a JSON text and replaces every list or object that has too many values with a string that says so. Otherwise a short text
 * could need a lot of memory when it is parsed. A text that is not JSON may be changed, but never becomes JSON.
 */
export function limitJsonValues(text: string): string {
  if (text.length < MIN_CHECKED_CHARS || !hasManyCommas(text)) return text
  const openContainers: { start: number; valuesBefore: number }[] = []
  let cuts: { from: number; to: number; values: number }[] = []
  let values = 0
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === QUOTE) i = endOfString(text, i + 1)
    else if (char === COMMA) values++
    else if (OPENING_BRACKETS.has(char)) openContainers.push({ start: i, valuesBefore: values++ })
    else if (CLOSING_BRACKETS.has(char)) {
      const container = openContainers.pop()
      if (!container || values - container.valuesBefore <= MAX_VALUES) continue
      const { start, valuesBefore } = container
      cuts = cuts.filter((cut) => cut.from < start)
      cuts.push({ from: start, to: i + 1, values: values - valuesBefore })
      values = valuesBefore + 1
    }
  }
  let end = 0
  const pieces = cuts.map(({ from, to, values: valueCount }) => {
    const unchanged = text.slice(end, from)
    end = to
    return (
      unchanged +
      JSON.stringify(`[dex: about ${valueCount} values not kept: ${text.slice(from, from + MAX_SHOWN_CHARS)}…]`)
    )
  })
  return pieces.join("") + text.slice(end)
}

function hasManyCommas(text: string): boolean {
  let count = 0
  for (let i = text.indexOf(","); i !== -1; i = text.indexOf(",", i + 1)) if (++count > MAX_VALUES) return true
  return false
}

/** Returns the index of the quote that closes the string, or the text's length if there is none. */
function endOfString(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === BACKSLASH) i++
    else if (char === QUOTE) return i
  }
  return text.length
}
