import { agents, sourceIds } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"
import { nearestNames } from "../core/nearest.ts"
import type { Dex } from "./context.ts"

/** A source that a filter can name, with all names that people use for it. */
export type NamedSource = { source: SourceId; words: string[]; isExported?: boolean }

export async function namedSources(dex: Dex): Promise<NamedSource[]> {
  const outside = (await dex.outsideAgents()).agents
  const sources = [...sourceIds, ...outside.map(({ source }) => source)]
  return sources.map((source) => {
    const agent = agents.find((agent) => agent.source === source)
    const name = agent?.name ?? outside.find((agent) => agent.source === source)?.name
    const words = [source, name ?? source, ...(agent?.aliases ?? [])].map(normaliseWord)
    return { source, words, isExported: agent?.isExported === true }
  })
}

/**
 * The sources that a word may mean: the exact match, otherwise the only one that begins with it (an agent before a service that
 * only exports), otherwise all that contain it.
 */
export function matchingSources(word: string, known: readonly NamedSource[]): SourceId[] {
  const typed = normaliseWord(word)
  const sourcesWith = (matches: (name: string) => boolean) => known.filter(({ words }) => words.some(matches))
  const [exact] = sourcesWith((name) => name === typed)
  const withPrefix = sourcesWith((name) => name.startsWith(typed))
  const agentsWithPrefix = withPrefix.filter(({ isExported }) => !isExported)
  const only = [agentsWithPrefix, withPrefix].find((some) => some.length === 1)
  const matching = exact ? [exact] : (only ?? sourcesWith((name) => name.includes(typed)))
  return matching.map(({ source }) => source)
}

/** The source that a word means. Throws a DexError if it matches no source, or several. */
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
