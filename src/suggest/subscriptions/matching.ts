import { DexError } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import type { Pattern, Subscription } from "../../core/suggestion.ts"
import { pathBelow } from "../../learn/paths.ts"

/** An event that subscribers may want to know about. */
export type Trigger = {
  project: string
  at: number
  /** A file that changed; an absolute path, or relative to the project. */
  file?: string
  /** The symbols that the file defines: `AuthService.login`. */
  symbols?: readonly string[]
  /** The text of a new message. */
  text?: string
  /** The last file that the message's conversation worked on. */
  lastFile?: string
}

export type SubscriptionMatch = { subscription: Subscription; pattern: Pattern }

const MAX_PATTERNS = 20
const MAX_WORDS_LENGTH = 200
const MAX_TEXT_LENGTH = 20_000

/**
 * The subscriptions that match a trigger, each with its most important matching pattern, most important first. Leaves out
 * subscriptions within their cooldown and those of other projects.
 */
export function matchingSubscriptions(
  subscriptions: readonly Subscription[],
  trigger: Trigger,
  platform = process.platform,
): SubscriptionMatch[] {
  const isMatching = matchingPattern(trigger)
  return subscriptions
    .filter(({ enabled, project }) => enabled && isSamePath(project, trigger.project, platform))
    .filter(({ last_triggered_at: last, cooldown_ms }) => last === undefined || trigger.at - last >= cooldown_ms)
    .flatMap((subscription) => {
      const [pattern] = [...subscription.patterns].sort(byPriority).filter(isMatching)
      return pattern ? [{ subscription, pattern }] : []
    })
    .sort((a, b) => byPriority(a.pattern, b.pattern))
}

/** Throws a DexError about the first invalid pattern. */
export function checkPatterns(patterns: readonly Pattern[]): void {
  if (patterns.length === 0)
    throw new DexError("usage", "What should be watched? For example: dex subscribe 'file:src/auth/**'")
  if (patterns.length > MAX_PATTERNS)
    throw new DexError(
      "usage",
      `A subscription can have at most ${MAX_PATTERNS} patterns. Create another subscription for the rest.`,
    )
  for (const { type, pattern } of patterns) {
    const wrong = type === "file" ? globProblem(pattern) : wordsProblem(pattern)
    if (wrong !== undefined)
      throw new DexError("usage", `The ${type} pattern ${JSON.stringify(pattern.slice(0, 80))} ${wrong}.`)
  }
}

function globProblem(pattern: string): string | undefined {
  const glob = globOf(pattern)
  return typeof glob === "function" ? undefined : glob.wrong
}

function wordsProblem(pattern: string): string | undefined {
  if (pattern.length > MAX_WORDS_LENGTH) return `is longer than ${MAX_WORDS_LENGTH} characters`
  return wordsOf(pattern).length === 0 ? "contains no word" : undefined
}

const byPriority = (a: Pattern, b: Pattern) => b.priority - a.priority

function matchingPattern({ project, file, symbols = [], text = "" }: Trigger): (pattern: Pattern) => boolean {
  const path = file === undefined ? undefined : pathBelow(project, file)
  const names = new Set(symbols.flatMap((symbol) => [symbol, ...symbol.split(/[.#:]+/)]))
  const words = new Set(wordsOf(text.slice(0, MAX_TEXT_LENGTH)))
  const containsWords = (pattern: string) => words.size > 0 && wordsOf(pattern).every((word) => words.has(word))
  const isFile = (name: string) => path !== undefined && (path === name || path.endsWith(`/${name}`))
  return ({ type, pattern }) => {
    switch (type) {
      case "file": {
        const glob = path === undefined ? undefined : globOf(pattern)
        return typeof glob === "function" && glob(path!)
      }
      case "symbol":
        return names.has(pattern)
      case "topic":
        return containsWords(pattern)
      case "entity":
        return names.has(pattern) || isFile(pattern) || containsWords(pattern)
    }
  }
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []
}

const MAX_LENGTH = 200
const MAX_ALTERNATIVES = 8
const MAX_SEGMENTS = 20
const MAX_PATH_LENGTH = 4_096
/** The maximum number of folders in a path. Without this limit, a path of 2,000 folders could be compared from each of them. */
const MAX_PATH_DEPTH = 100

/** Tests a path that is relative to its project and uses `/`. */
export type Glob = (path: string) => boolean

/**
 * Returns a test for paths, or the reason why the glob is invalid. Supports `*` and `?` within a segment, `**` across segments
 * (at the end, everything below), and `{a,b}`. Brackets are literal, as in `app/[id]/page.tsx`, and `*` also matches names that
 * begin with a dot. Uses no regular expressions, so that no pattern can be slow.
 */
export function globOf(pattern: string): Glob | { wrong: string } {
  const trimmed = pattern.trim().replaceAll("\\", "/").replace(/^\.\//, "")
  if (trimmed === "") return { wrong: "is empty" }
  if (trimmed.length > MAX_LENGTH) return { wrong: `is longer than ${MAX_LENGTH} characters` }
  if (trimmed.startsWith("!")) return { wrong: "must say what to watch, not what to leave out" }
  if (trimmed.startsWith("/") || /^[a-z]:/i.test(trimmed) || trimmed.split("/").includes(".."))
    return { wrong: "must be a path below the project, like src/auth/**" }
  const alternatives = expandBraces(trimmed)
  if (alternatives === undefined)
    return {
      wrong: `has braces that dex cannot use; write {a,b}, not nested, for at most ${MAX_ALTERNATIVES} paths in all`,
    }
  if (alternatives.some((alternative) => alternative.split("/").length > MAX_SEGMENTS))
    return { wrong: `has more than ${MAX_SEGMENTS} names; use ** for any number of folders` }
  const segmentLists = alternatives.map((alternative) =>
    alternative
      .replace(/(^|\/)\*\*$/, "$1**/*")
      .split("/")
      .map(segmentOf),
  )
  return (path) => {
    if (path.length > MAX_PATH_LENGTH) return false
    const segments = path.replaceAll("\\", "/").split("/")
    if (segments.length > MAX_PATH_DEPTH) return false
    return segmentLists.some((one) =>
      matchesWildcards(
        one.length,
        segments.length,
        (p) => one[p]!.isAnyDepth,
        (p, t) => one[p]!.matchesPieces(segments[t]!),
      ),
    )
  }
}

function expandBraces(pattern: string): string[] | undefined {
  let beginnings = [""]
  let rest = pattern
  for (;;) {
    const open = rest.indexOf("{")
    if (open < 0) return rest.includes("}") ? undefined : beginnings.map((start) => start + rest)
    const close = rest.indexOf("}", open)
    const inside = rest.slice(open + 1, close)
    if (close < 0 || rest.slice(0, open).includes("}") || inside.includes("{") || !inside.includes(","))
      return undefined
    const [before, options] = [rest.slice(0, open), inside.split(",")]
    if (beginnings.length * options.length > MAX_ALTERNATIVES) return undefined
    beginnings = beginnings.flatMap((start) => options.map((option) => start + before + option))
    rest = rest.slice(close + 1)
  }
}

type Segment = { isAnyDepth: boolean; matchesPieces(text: string): boolean }

function segmentOf(pattern: string): Segment {
  if (!/[*?]/.test(pattern)) return { isAnyDepth: false, matchesPieces: (text) => text === pattern }
  if (/^\*+$/.test(pattern)) return { isAnyDepth: pattern === "**", matchesPieces: () => true }
  const characters = Array.from(pattern, (_, i) => pattern.charCodeAt(i))
  const matches = (p: number, code: number) => characters[p] === QUESTION_MARK || characters[p] === code
  return {
    isAnyDepth: false,
    matchesPieces: (text) =>
      matchesWildcards(
        characters.length,
        text.length,
        (p) => characters[p] === STAR,
        (p, t) => matches(p, text.charCodeAt(t)),
      ),
  }
}

const STAR = "*".charCodeAt(0)
const QUESTION_MARK = "?".charCodeAt(0)

/**
 * Matches a text against a pattern, both given by their lengths and by functions that compare positions. Only the last star is
 * retried, so this takes at most `patternLength` × `textLength` steps.
 */
function matchesWildcards(
  patternLength: number,
  textLength: number,
  isStar: (p: number) => boolean,
  same: (p: number, t: number) => boolean,
): boolean {
  let [p, t, star, from] = [0, 0, -1, 0]
  while (t < textLength) {
    if (p < patternLength && isStar(p)) {
      star = p++
      from = t
    } else if (p < patternLength && same(p, t)) {
      p++
      t++
    } else if (star >= 0) {
      p = star + 1
      t = ++from
    } else return false
  }
  while (p < patternLength && isStar(p)) p++
  return p === patternLength
}
