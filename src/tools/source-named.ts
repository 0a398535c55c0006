import { agents, sourceIds } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"
import { nearestNames } from "../core/nearest.ts"
import type { Dex } from "./context.ts"

/** A source that a filter can name, with all names that people use for it. */
export type NamedSource = { source: SourceId; words: string[] }

export async function namedSources(dex: Dex): Promise<NamedSource[]> {
  const outside = (await dex.outside()).agents
  const sources = [...sourceIds, ...outside.map(({ source }) => source)]
  return sources.map((source) => {
    const agent = agents.find((agent) => agent.source === source)
    const name = agent?.name ?? outside.find((agent) => agent.source === source)?.name
    return { source, words: [source, name ?? source, ...(agent?.aliases ?? [])].map(normaliseWord) }
  })
}

/** The sources that a word may mean: the exact match, otherwise the only one that begins with it, otherwise all that contain it. */
export function matchingSources(word: string, known: readonly NamedSource[]): SourceId[] {
  const typed = normaliseWord(word)
  const sourcesWith = (matches: (name: string) => boolean) => known.filter(({ words }) => words.some(matches))
  const [exact] = sourcesWith((name) => name === typed)
  const withPrefix = sourcesWith((name) => name.startsWith(typed))
  const matching = exact ? [exact] : withPrefix.length === 1 ? withPrefix : sourcesWith((name) => name.includes(typed))
  return matching.map(({ source }) => source)
}

/** The source that a word means. Throws a DexError with the most similar names if it matches none or several. */
export function requireSource(word: string, known: readonly NamedSource[]): SourceId {
  const [only, ...others] = matchingSources(word, known)
  if (only !== undefined && others.length === 0) return only
  const quotedWord = JSON.stringify(word)
  if (only !== undefined)
    throw new DexError(
      "bad_input",
      `${quotedWord} matches several agents: ${[only, ...others].join(", ")}. Type more of it.`,
    )
  const similarNames = nearestNames(
    normaliseWord(word),
    known.flatMap(({ words }) => words),
  )
  const sources = new Set(similarNames.flatMap((name) => matchingSources(name, known)))
  throw new DexError(
    "bad_input",
    sources.size > 0
      ? `No agent is called ${quotedWord}. Did you mean ${[...sources].join(" or ")}?`
      : `No agent is called ${quotedWord}. The agents are: ${known.map(({ source }) => source).join(", ")}.`,
  )
}

function normaliseWord(word: string): string {
  return word.toLowerCase().replaceAll(/[\s-]+/g, "_")
}
