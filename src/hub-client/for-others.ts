import type { RawRecord } from "../core/record.ts"
import { redactRecord } from "../redact/redact.ts"
import { withVisibleTexts } from "../render/visible.ts"

/** One kind of removed text, and how often it was removed. `earlier`: it was already removed when dex read the text. */
export type RemovedText = { what: string; count: number; earlier?: boolean }

const REDACTION_MARK = /\[REDACTED:([\w-]+)\]/g
const HOME_LABEL = "your home folder's path"
const NAME_LABEL = "your name in other paths"

/**
 * Returns a copy of a value for other people: without invisible characters, redacted by the newest rules, and without user names
 * and home folders of this machine.
 */
export function redactForSharing<T extends object>(
  value: T,
  places: PlacePatterns,
): { value: T; taken_out: RemovedText[] } {
  const visible = withVisibleTexts(structuredClone(value)).output as RawRecord
  const earlier = marksIn(JSON.stringify(visible))
  const { record, redactions } = redactRecord(visible)
  let homeCount = 0
  let nameCount = 0
  const maskedRecord = mapTexts(record, (text) => {
    const maskedText = maskPlaces(text, places)
    homeCount += maskedText.homeCount
    nameCount += maskedText.nameCount
    return maskedText.text
  })
  return {
    value: maskedRecord as T,
    taken_out: [
      ...Object.entries(redactions).map(([what, count]) => ({ what, count })),
      ...(homeCount > 0 ? [{ what: HOME_LABEL, count: homeCount }] : []),
      ...(nameCount > 0 ? [{ what: NAME_LABEL, count: nameCount }] : []),
      ...[...earlier].map(([what, count]) => ({ what, count, earlier: true })),
    ],
  }
}

/** Adds up the counts of several lists. */
export function sumRemoved(lists: Iterable<RemovedText[]>): RemovedText[] {
  const sums = new Map<string, RemovedText>()
  for (const one of [...lists].flat()) {
    const name = `${one.what}${one.earlier ? "+" : ""}`
    sums.set(name, { ...one, count: one.count + (sums.get(name)?.count ?? 0) })
  }
  return [...sums.values()]
}

function marksIn(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [, rule] of text.matchAll(REDACTION_MARK)) counts.set(rule!, (counts.get(rule!) ?? 0) + 1)
  return counts
}

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, change))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapTexts(inner, change)]))
}

/** Patterns for texts that identify a machine: home folders and user names. Built once for many texts; see `maskPlaces`. */
export type PlacePatterns = { home: RegExp | undefined; names: RegExp | undefined; common: RegExp | undefined }

type MaskedText = { text: string; homeCount: number; nameCount: number }

const USER_MASK = "[user]"
/** Matches the separator between two names in a path: plain, escaped in JSON, or percent-encoded. */
const SEPARATOR = String.raw`(?:[\\/]+|%2F|%5C|\\u002f|\\u005c)`
const NAME_END = String.raw`(?![\p{L}\p{N}\p{M}])`
/** Matches the start of a name, also after an escaped character: `%2Falice`. */
const NAME_START = String.raw`(?:(?<![\p{L}\p{N}\p{M}])|(?<=%[0-9a-f]{2}|\\u[0-9a-f]{4}))`
/** Account names that identify nobody, and words that occur in many paths. */
const IMPERSONAL_NAMES = new Set(
  "root user users home admin administrator ubuntu debian node dev runner vscode codespace docker app src test code work public shared default guest".split(
    " ",
  ),
)
/**
 * Matches a folder `Users` at the root, on a drive or on a mounted drive (`C:\Users`, `/mnt/c/Users`), and the name of a folder
 * in it. Does not match `/v2/Users/1` in a web address.
 */
const ANY_HOME =
  /(?<![\w.-])((?:[a-z]:|[\\/]+(?:mnt[\\/]+)?[a-z](?=[\\/]))?(?:[\\/]+)Users[\\/]+)(?!(?:Shared|Public|Default)(?![\w-]))((?:\\+u[0-9a-f]{4}|[^\\/\s"'`<>|:*?,;()[\]{}%])+)/gi

/**
 * Builds the patterns. `folders` are the folders in which projects are or were, on this machine or another one. The user names in
 * their paths are masked too, because the same person may have another user name elsewhere.
 */
export function createPlacePatterns({
  home,
  user = [],
  folders = [],
}: {
  home: string
  user?: string[]
  folders?: string[]
}): PlacePatterns {
  const homeNames = home.split(/[\\/]+/).filter(Boolean)
  const allNames = [homeNames.at(-1), ...user, ...[home, ...folders].map(ownerIn)]
  const names = [...new Set(allNames.filter((name) => name !== undefined).map((name) => name.normalize("NFC")))]
  const validNames = names.filter((name) => name.length > 1 && !/^[a-z]:$/i.test(name))
  const identifyingNames = validNames.filter((name) => !IMPERSONAL_NAMES.has(name.toLowerCase()))
  const impersonalNames = validNames.filter((name) => IMPERSONAL_NAMES.has(name.toLowerCase()))
  return {
    home: home.replace(/[\\/]+$/, "").length < 3 ? undefined : homePattern(home, homeNames),
    names:
      identifyingNames.length === 0
        ? undefined
        : new RegExp(`${NAME_START}(?:${anyOf(identifyingNames)})${NAME_END}`, "giu"),
    common:
      impersonalNames.length === 0
        ? undefined
        : new RegExp(`(${SEPARATOR}(?:Users|home)${SEPARATOR})(?:${anyOf(impersonalNames)})${NAME_END}`, "giu"),
  }
}

/** Replaces the home folder with `~`, and user names in other paths with `[user]`. Masking a text again changes nothing. */
export function maskPlaces(text: string, places: PlacePatterns): MaskedText {
  let homeCount = 0
  let nameCount = 0
  let masked = text
  if (places.home)
    masked = masked.replace(places.home, () => {
      homeCount++
      return "~"
    })
  const hide = (_: string, before: string) => {
    nameCount++
    return before + USER_MASK
  }
  if (places.common) masked = masked.replace(places.common, hide)
  if (places.names)
    masked = masked.replace(places.names, (name: string, ...rest: unknown[]) => {
      const position = rest.find((one) => typeof one === "number") as number
      if (!isInPath(masked, position)) return name
      nameCount++
      return USER_MASK
    })
  masked = masked.replace(ANY_HOME, hide)
  return { text: masked, homeCount, nameCount }
}

/** The user whose home folder contains this folder. Undefined if the path shows no home folder. */
function ownerIn(folder: string): string | undefined {
  return /(?:^|[\\/])(?:Users|home)[\\/]+([^\\/]+)/i.exec(folder)?.[1]
}

function homePattern(home: string, names: string[]): RegExp {
  // A home with a single name, such as /root, could also be a nested folder with that name.
  const before = names.length === 1 ? String.raw`(?<![\p{L}\p{N}_.-])` : ""
  const start = before + (/^[\\/]/.test(home) ? SEPARATOR : "")
  return new RegExp(`${start}${names.map(namePattern).join(SEPARATOR)}${NAME_END}`, "giu")
}

function anyOf(names: string[]): string {
  return names
    .sort((a, b) => b.length - a.length)
    .map(namePattern)
    .join("|")
}

/**
 * Matches a name in any spelling: plain, with composed or decomposed letters, escaped for JSON once or more, percent-encoded, or
 * quoted for a shell.
 */
function namePattern(name: string): string {
  const spellings = [name, name.normalize("NFC"), name.normalize("NFD")].map((one) =>
    Array.from(one, characterPattern).join(""),
  )
  return `(?:${[...new Set(spellings)].join("|")})`
}

function characterPattern(character: string): string {
  if (/[\w.-]/.test(character)) return escapeForRegExp(character)
  const units = Array.from({ length: character.length }, (_, i) =>
    character.charCodeAt(i).toString(16).padStart(4, "0"),
  )
  const bytes = Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).padStart(2, "0")}`)
  const inJson = units.map((unit) => String.raw`\\+u${unit}`).join("")
  return String.raw`(?:\\*${escapeForRegExp(character)}|${inJson}|${bytes.join("")}${character === " " ? String.raw`|\+` : ""})`
}

function escapeForRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")
}

const WORD_BREAK = /[\s"'`<>|;,(){}]/
const MAX_PATH_LENGTH = 4_096
/** Matches the text before a name if that is a site's address. The name is then a repository's owner and not a folder. */
const SITE_ADDRESS =
  /^[^\w@]*(?:(?:https?|ssh|git|git\+\w+):\/\/|git@|@$|(?:www\.)?(?:github|gitlab|bitbucket|codeberg)\.(?:com|org)[:/]+$)[^\\/]*[:/]?$/i

/** True if the text at this position is part of a path: there is a separator before it in the same word. */
function isInPath(text: string, position: number): boolean {
  let start = position
  while (start > 0 && position - start < MAX_PATH_LENGTH && !WORD_BREAK.test(text[start - 1]!)) start--
  const before = text.slice(start, position)
  if (SITE_ADDRESS.test(before)) return false
  return /[\\/]|%2F|%5C|-(?:Users|home)-$|~$/i.test(before)
}
