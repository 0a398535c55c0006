const LONGEST = 200
const MOST_ALTERNATIVES = 8
const LONGEST_PATH = 4_096

/** Says whether a path, relative to its project and with `/`, fits. */
export type Glob = (path: string) => boolean

/**
 * A glob without regular expressions, so that none can be made to take long: `*` and `?` within a segment, `**` over
 * segments (at the end: everything below), `{a,b}`. Brackets are themselves: `app/[id]/page.tsx` is a file. A name that begins with a dot is a name.
 */
export function globOf(pattern: string): Glob | { wrong: string } {
  const asked = pattern.trim().replaceAll("\\", "/").replace(/^\.\//, "")
  if (asked === "") return { wrong: "is empty" }
  if (asked.length > LONGEST) return { wrong: `is longer than ${LONGEST} signs` }
  if (asked.startsWith("!")) return { wrong: "must say what to watch, not what to leave out" }
  if (asked.startsWith("/") || /^[a-z]:/i.test(asked) || asked.split("/").includes(".."))
    return { wrong: "must be a path below the project, like src/auth/**" }
  const alternatives = expand(asked)
  if (alternatives === undefined)
    return { wrong: `may hold braces like {a,b}, not nested, for ${MOST_ALTERNATIVES} paths in all` }
  const wanted = alternatives.map((alternative) =>
    alternative
      .replace(/(^|\/)\*\*$/, "$1**/*")
      .split("/")
      .map(segmentOf),
  )
  return (path) => {
    if (path.length > LONGEST_PATH) return false
    const segments = path.replaceAll("\\", "/").split("/")
    return wanted.some((one) => fits(one, segments, isAny, fitsSegment))
  }
}

function expand(pattern: string): string[] | undefined {
  let done = [""]
  let rest = pattern
  for (;;) {
    const open = rest.indexOf("{")
    if (open < 0) return rest.includes("}") ? undefined : done.map((start) => start + rest)
    const close = rest.indexOf("}", open)
    const inside = rest.slice(open + 1, close)
    if (close < 0 || rest.slice(0, open).includes("}") || inside.includes("{") || !inside.includes(","))
      return undefined
    const [before, options] = [rest.slice(0, open), inside.split(",")]
    if (done.length * options.length > MOST_ALTERNATIVES) return undefined
    done = done.flatMap((start) => options.map((option) => start + before + option))
    rest = rest.slice(close + 1)
  }
}

type Segment = { any: boolean; fits(text: string): boolean }

function segmentOf(pattern: string): Segment {
  if (!/[*?]/.test(pattern)) return { any: false, fits: (text) => text === pattern }
  return {
    any: pattern === "**",
    fits: /^\*+$/.test(pattern) ? () => true : (text) => fits(pattern, text, isStar, fitsSign),
  }
}

const isAny = ({ any }: Segment) => any
const fitsSegment = (segment: Segment, text: string) => segment.fits(text)
const isStar = (sign: string) => sign === "*"
const fitsSign = (sign: string, one: string) => sign === "?" || sign === one

/** Only the last star is ever gone back to, so this takes at most pattern × text steps. */
function fits<P>(
  pattern: ArrayLike<P>,
  text: ArrayLike<string>,
  isStar: (of: P) => boolean,
  same: (of: P, one: string) => boolean,
): boolean {
  let [p, t, star, from] = [0, 0, -1, 0]
  while (t < text.length) {
    if (p < pattern.length && isStar(pattern[p]!)) {
      star = p++
      from = t
    } else if (p < pattern.length && same(pattern[p]!, text[t]!)) {
      p++
      t++
    } else if (star >= 0) {
      p = star + 1
      t = ++from
    } else return false
  }
  while (p < pattern.length && isStar(pattern[p]!)) p++
  return p === pattern.length
}
