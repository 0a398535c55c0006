/** Patterns for what a text may reveal about its machine. Compiled once for many texts: see `maskedPlaces`. */
export type Places = { home: RegExp | undefined; names: RegExp | undefined; common: RegExp | undefined }

export type Masked = { text: string; homes: number; names: number }

const MASK = "[user]"
/** Between two names of a path: plain, escaped in JSON, or percent-encoded. */
const SEPARATOR = String.raw`(?:[\\/]+|%2F|%5C|\\u002f|\\u005c)`
const ENDS = String.raw`(?![\p{L}\p{N}\p{M}])`
/** Also after an encoded character: `%2Falice`. */
const BEGINS = String.raw`(?:(?<![\p{L}\p{N}\p{M}])|(?<=%[0-9a-f]{2}|\\u[0-9a-f]{4}))`
/** Account names that identify nobody, and words that occur in many paths. */
const NOBODY = new Set(
  "root user users home admin administrator ubuntu debian node dev runner vscode codespace docker app src test code work public shared default guest".split(
    " ",
  ),
)
/** A folder of homes at the root, on a drive or below a drive's mount, then a name. Not `/v2/Users/1` in an address. */
const ANYBODY =
  /(?<![\w.-])((?:[a-z]:|[\\/]+(?:mnt[\\/]+)?[a-z](?=[\\/]))?(?:[\\/]+)Users[\\/]+)(?!(?:Shared|Public|Default)(?![\w-]))((?:\\+u[0-9a-f]{4}|[^\\/\s"'`<>|:*?,;()[\]{}%])+)/gi

/**
 * `folders` are where projects are or were, on this machine or another one. The owners of the homes in these paths are masked
 * too, because the same person may have another name there.
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

/** Replaces the home folder with `~`, and the user's name in other paths with `[user]`. Doing it twice changes nothing. */
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

/** The name of the home that a folder is in, if its path shows it. */
function ownerIn(folder: string): string | undefined {
  return /(?:^|[\\/])(?:Users|home)[\\/]+([^\\/]+)/i.exec(folder)?.[1]
}

function homePattern(home: string, names: string[]): RegExp {
  // A home with a single name, such as /root, must be at the start: elsewhere it is another folder.
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

/** Matches a name with composed or decomposed letters, escaped for JSON once or more, percent-encoded, or escaped for a shell. */
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
const LONGEST_PATH = 4_096
/** A site's address, after which the next name is a repository's owner instead of a folder. */
const OF_A_SITE =
  /^[^\w@]*(?:(?:https?|ssh|git|git\+\w+):\/\/|git@|@$|(?:www\.)?(?:github|gitlab|bitbucket|codeberg)\.(?:com|org)[:/]+$)[^\\/]*[:/]?$/i

/** Whether the name at this position belongs to a path, which has a separator before it in the same word. */
function isInPath(text: string, at: number): boolean {
  let start = at
  while (start > 0 && at - start < LONGEST_PATH && !BREAKS.test(text[start - 1]!)) start--
  const before = text.slice(start, at)
  if (OF_A_SITE.test(before)) return false
  return /[\\/]|%2F|%5C|-(?:Users|home)-$|~$/i.test(before)
}
