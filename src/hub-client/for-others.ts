import type { RawRecord } from "../core/record.ts"
import { redactRecord } from "../redact/redact.ts"
import { visibleIn } from "../render/visible.ts"

/** One kind of removed text, and how often it was removed. `earlier`: already when dex read it. */
export type TakenOut = { what: string; count: number; earlier?: boolean }

const MARK = /\[REDACTED:([\w-]+)\]/g
const HOME = "your home folder's path"
const NAME = "your name in other paths"

/**
 * A copy of a value for others: without invisible characters, redacted by the newest rules, and without names of places on
 * this machine.
 */
export function forOthers<T extends object>(value: T, places: Places): { value: T; taken_out: TakenOut[] } {
  const seen = visibleIn(structuredClone(value)).output as RawRecord
  const earlier = marksIn(JSON.stringify(seen))
  const { record, redactions } = redactRecord(seen)
  let homes = 0
  let names = 0
  const masked = everyText(record, (text) => {
    const hidden = maskedPlaces(text, places)
    homes += hidden.homes
    names += hidden.names
    return hidden.text
  })
  return {
    value: masked as T,
    taken_out: [
      ...Object.entries(redactions).map(([what, count]) => ({ what, count })),
      ...(homes > 0 ? [{ what: HOME, count: homes }] : []),
      ...(names > 0 ? [{ what: NAME, count: names }] : []),
      ...[...earlier].map(([what, count]) => ({ what, count, earlier: true })),
    ],
  }
}

/** Adds up several lists. */
export function addedUp(lists: Iterable<TakenOut[]>): TakenOut[] {
  const sums = new Map<string, TakenOut>()
  for (const one of [...lists].flat()) {
    const name = `${one.what}${one.earlier ? "+" : ""}`
    sums.set(name, { ...one, count: one.count + (sums.get(name)?.count ?? 0) })
  }
  return [...sums.values()]
}

function marksIn(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [, rule] of text.matchAll(MARK)) counts.set(rule!, (counts.get(rule!) ?? 0) + 1)
  return counts
}

function everyText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((one) => everyText(one, change))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, everyText(inner, change)]))
}

/** What a text may say of the machine that it comes from. Made once for many texts: see `maskedPlaces`. */
export type Places = { home: RegExp | undefined; names: RegExp | undefined; common: RegExp | undefined }

type Masked = { text: string; homes: number; names: number }

const MASK = "[user]"
/** Between two names of a path: as it is, escaped in JSON, or percent-encoded. */
const SEPARATOR = String.raw`(?:[\\/]+|%2F|%5C|\\u002f|\\u005c)`
const ENDS = String.raw`(?![\p{L}\p{N}\p{M}])`
/** Also behind a sign that is written out: `%2Falice`. */
const BEGINS = String.raw`(?:(?<![\p{L}\p{N}\p{M}])|(?<=%[0-9a-f]{2}|\\u[0-9a-f]{4}))`
/** Names of accounts that are nobody's, and words of many paths. */
const NOBODY = new Set(
  "root user users home admin administrator ubuntu debian node dev runner vscode codespace docker app src test code work public shared default guest".split(
    " ",
  ),
)
/** A folder of homes at the root, on a drive or below a mount of one; then a name. Not `/v2/Users/1` of an address. */
const ANYBODY =
  /(?<![\w.-])((?:[a-z]:|[\\/]+(?:mnt[\\/]+)?[a-z](?=[\\/]))?(?:[\\/]+)Users[\\/]+)(?!(?:Shared|Public|Default)(?![\w-]))((?:\\+u[0-9a-f]{4}|[^\\/\s"'`<>|:*?,;()[\]{}%])+)/gi

/**
 * `folders`: where projects are or were, on this machine or another one. Whose homes they are in is worked out from them:
 * the same person may be called otherwise there.
 */
export function placesOf({
  home,
  user = [],
  folders = [],
}: {
  home: string
  user?: string[]
  folders?: string[]
}): Places {
  const homeNames = home.split(/[\\/]+/).filter(Boolean)
  const own = [homeNames.at(-1), ...user, ...[home, ...folders].map(ownerIn)]
  const names = [...new Set(own.filter((name) => name !== undefined).map((name) => name.normalize("NFC")))]
  const known = names.filter((name) => name.length > 1 && !/^[a-z]:$/i.test(name))
  const rare = known.filter((name) => !NOBODY.has(name.toLowerCase()))
  const common = known.filter((name) => NOBODY.has(name.toLowerCase()))
  return {
    home: home.replace(/[\\/]+$/, "").length < 3 ? undefined : homePattern(home, homeNames),
    names: rare.length === 0 ? undefined : new RegExp(`${BEGINS}(?:${anyOf(rare)})${ENDS}`, "giu"),
    common:
      common.length === 0
        ? undefined
        : new RegExp(`(${SEPARATOR}(?:Users|home)${SEPARATOR})(?:${anyOf(common)})${ENDS}`, "giu"),
  }
}

/** `~` in place of the home folder, and `[user]` in place of the user's name in other paths. Twice changes nothing. */
export function maskedPlaces(text: string, places: Places): Masked {
  let homes = 0
  let names = 0
  let masked = text
  if (places.home)
    masked = masked.replace(places.home, () => {
      homes++
      return "~"
    })
  const hide = (_: string, before: string) => {
    names++
    return before + MASK
  }
  if (places.common) masked = masked.replace(places.common, hide)
  if (places.names)
    masked = masked.replace(places.names, (name: string, ...rest: unknown[]) => {
      const at = rest.find((one) => typeof one === "number") as number
      if (!isInPath(masked, at)) return name
      names++
      return MASK
    })
  masked = masked.replace(ANYBODY, hide)
  return { text: masked, homes, names }
}

/** Whose home a folder is in, as far as its path says. */
function ownerIn(folder: string): string | undefined {
  return /(?:^|[\\/])(?:Users|home)[\\/]+([^\\/]+)/i.exec(folder)?.[1]
}

function homePattern(home: string, names: string[]): RegExp {
  // Of one name, as /root: elsewhere it is another folder.
  const before = names.length === 1 ? String.raw`(?<![\p{L}\p{N}_.-])` : ""
  const start = before + (/^[\\/]/.test(home) ? SEPARATOR : "")
  return new RegExp(`${start}${names.map(spelledAnyhow).join(SEPARATOR)}${ENDS}`, "giu")
}

function anyOf(names: string[]): string {
  return names
    .sort((a, b) => b.length - a.length)
    .map(spelledAnyhow)
    .join("|")
}

/** A name as it is, with its letters composed or not, escaped for JSON once or more, in an address, or for a shell. */
function spelledAnyhow(name: string): string {
  const spellings = [name, name.normalize("NFC"), name.normalize("NFD")].map((one) =>
    Array.from(one, spelledSign).join(""),
  )
  return `(?:${[...new Set(spellings)].join("|")})`
}

function spelledSign(sign: string): string {
  if (/[\w.-]/.test(sign)) return escaped(sign)
  const units = Array.from({ length: sign.length }, (_, i) => sign.charCodeAt(i).toString(16).padStart(4, "0"))
  const bytes = Array.from(Buffer.from(sign), (byte) => `%${byte.toString(16).padStart(2, "0")}`)
  const inJson = units.map((unit) => String.raw`\\+u${unit}`).join("")
  return String.raw`(?:\\*${escaped(sign)}|${inJson}|${bytes.join("")}${sign === " " ? String.raw`|\+` : ""})`
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")
}

const BREAKS = /[\s"'`<>|;,(){}]/
const MAX_PATH_LENGTH = 4_096
/** A site's own address, and the one name behind it: whose repository it is, not whose folder. */
const OF_A_SITE =
  /^[^\w@]*(?:(?:https?|ssh|git|git\+\w+):\/\/|git@|@$|(?:www\.)?(?:github|gitlab|bitbucket|codeberg)\.(?:com|org)[:/]+$)[^\\/]*[:/]?$/i

/** Whether what begins here belongs to a path: a separator stands before it in the same word. */
function isInPath(text: string, at: number): boolean {
  let start = at
  while (start > 0 && at - start < MAX_PATH_LENGTH && !BREAKS.test(text[start - 1]!)) start--
  const before = text.slice(start, at)
  if (OF_A_SITE.test(before)) return false
  return /[\\/]|%2F|%5C|-(?:Users|home)-$|~$/i.test(before)
}
