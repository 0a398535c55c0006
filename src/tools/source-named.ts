import { agents, sourceIds } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"
import { nearestNames } from "../core/nearest.ts"
import type { Dex } from "./context.ts"

/** A source that a filter can name, with all names that people use for it. */
export type NamedSource = { source: SourceId; words: string[] }

export async function namedSources(dex: Dex): Promise<NamedSource[]> {
  const outside = (await dex.outside()).agents
  const known = [...sourceIds, ...outside.map(({ source }) => source)]
  return known.map((source) => {
    const agent = agents.find((one) => one.source === source)
    const name = agent?.name ?? outside.find((one) => one.source === source)?.name
    return { source, words: [source, name ?? source, ...(agent?.aliases ?? [])].map(plain) }
  })
}

/** The sources that a word may mean: an exact match, or the only one that begins with it, or all that contain it. */
export function matchingSources(word: string, known: readonly NamedSource[]): SourceId[] {
  const typed = plain(word)
  const having = (is: (one: string) => boolean) => known.filter(({ words }) => words.some(is))
  const [own] = having((one) => one === typed)
  const begun = having((one) => one.startsWith(typed))
  const meant = own ? [own] : begun.length === 1 ? begun : having((one) => one.includes(typed))
  return meant.map(({ source }) => source)
}

/** The source that a word means. Throws a DexError with the most similar names if it matches none or several. */
export function requireSource(word: string, known: readonly NamedSource[]): SourceId {
  const [only, ...others] = matchingSources(word, known)
  if (only !== undefined && others.length === 0) return only
  const shown = JSON.stringify(word)
  if (only !== undefined)
    throw new DexError(
      "bad_input",
      `${shown} matches several agents: ${[only, ...others].join(", ")}. Type more of it.`,
    )
  const near = nearestNames(
    plain(word),
    known.flatMap(({ words }) => words),
  )
  const sources = new Set(near.flatMap((name) => matchingSources(name, known)))
  throw new DexError(
    "bad_input",
    sources.size > 0
      ? `No agent is called ${shown}. Did you mean ${[...sources].join(" or ")}?`
      : `No agent is called ${shown}. The agents are: ${known.map(({ source }) => source).join(", ")}.`,
  )
}

function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[\s-]+/g, "_")
}
