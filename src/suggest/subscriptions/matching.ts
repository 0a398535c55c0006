import { DexError } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import type { Pattern, Subscription } from "../../core/suggestion.ts"
import { pathBelow } from "../paths.ts"
import { globOf } from "./glob.ts"

/** What happened that somebody may want to be told of. */
export type Trigger = {
  project: string
  at: number
  /** A file that changed, whole or relative to the project. */
  file?: string
  /** What is defined there: `AuthService.login`. */
  symbols?: readonly string[]
  /** The words of a new message, and the file that was last worked on beside it. */
  text?: string
  beside?: string
}

export type Match = { subscription: Subscription; pattern: Pattern }

const MOST_PATTERNS = 20
const LONGEST_WORDS = 200
const LONGEST_TEXT = 20_000

/**
 * The subscriptions that a trigger concerns, each with its most important pattern that fits, the most important first. One
 * that was told of something within its cooldown is not among them. Only those of the same project are looked at.
 */
export function matching(
  subscriptions: readonly Subscription[],
  trigger: Trigger,
  platform = process.platform,
): Match[] {
  const concerns = fitting(trigger)
  return subscriptions
    .filter(({ enabled, project }) => enabled && isSamePath(project, trigger.project, platform))
    .filter(({ last_triggered_at: last, cooldown_ms }) => last === undefined || trigger.at - last >= cooldown_ms)
    .flatMap((subscription) => {
      const [pattern] = [...subscription.patterns].sort(byPriority).filter(concerns)
      return pattern ? [{ subscription, pattern }] : []
    })
    .sort((a, b) => byPriority(a.pattern, b.pattern))
}

/** Throws a DexError that says what is wrong with the first bad one. */
export function checkPatterns(patterns: readonly Pattern[]): void {
  if (patterns.length === 0)
    throw new DexError("usage", "What should be watched? For example: dex subscribe 'file:src/auth/**'")
  if (patterns.length > MOST_PATTERNS)
    throw new DexError("usage", `A subscription may have ${MOST_PATTERNS} patterns at the most. Make a second one.`)
  for (const { type, pattern } of patterns) {
    const wrong = type === "file" ? wrongGlob(pattern) : wrongWords(pattern)
    if (wrong !== undefined)
      throw new DexError("usage", `The ${type} pattern ${JSON.stringify(pattern.slice(0, 80))} ${wrong}.`)
  }
}

function wrongGlob(pattern: string): string | undefined {
  const glob = globOf(pattern)
  return typeof glob === "function" ? undefined : glob.wrong
}

function wrongWords(pattern: string): string | undefined {
  if (pattern.length > LONGEST_WORDS) return `is longer than ${LONGEST_WORDS} signs`
  return wordsOf(pattern).length === 0 ? "holds no word" : undefined
}

const byPriority = (a: Pattern, b: Pattern) => b.priority - a.priority

function fitting({ project, file, symbols = [], text = "" }: Trigger): (pattern: Pattern) => boolean {
  const path = file === undefined ? undefined : pathBelow(project, file)
  const names = new Set(symbols.flatMap((symbol) => [symbol, ...symbol.split(/[.#:]+/)]))
  const words = new Set(wordsOf(text.slice(0, LONGEST_TEXT)))
  const says = (pattern: string) => words.size > 0 && wordsOf(pattern).every((word) => words.has(word))
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
        return says(pattern)
      case "entity":
        return names.has(pattern) || isFile(pattern) || says(pattern)
    }
  }
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []
}
