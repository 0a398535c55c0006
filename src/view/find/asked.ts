import { parseQuery } from "../../search/query.ts"
import type { Addresses } from "../address.ts"

/** What can be narrowed by a link, under the names that the search itself has for it. */
const NARROWED_BY = ["source", "project", "from", "to", "file", "tool", "in"] as const

export type Narrowing = Partial<Record<(typeof NARROWED_BY)[number], string>>

/** What an address of the page asks for. */
export type FindQuestion = { words: string; narrowed: Narrowing; offset: number }

export function askedIn(query: URLSearchParams): FindQuestion {
  const given = NARROWED_BY.map((name) => [name, (query.get(name) ?? "").trim()])
  const offset = Number(query.get("offset"))
  return {
    words: (query.get("q") ?? "").trim(),
    narrowed: Object.fromEntries(given.filter(([, value]) => value !== "")),
    offset: Number.isSafeInteger(offset) && offset > 0 ? offset : 0,
  }
}

/** Whether there is anything to look for in messages; `project:api` alone only narrows. */
export function hasTerms({ words }: FindQuestion): boolean {
  return parseQuery(words).terms.length > 0
}

/** The same question with something changed, from its first row on. `undefined` takes a narrowing back. */
export function addressWith(
  to: Addresses,
  { words, narrowed }: FindQuestion,
  change: { [Name in keyof Narrowing]?: string | undefined } & { q?: string; offset?: number | undefined } = {},
): string {
  return to.find({ q: words === "" ? undefined : words, ...narrowed, ...change })
}
