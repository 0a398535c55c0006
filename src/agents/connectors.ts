import type { SourceId } from "../core/conversation.ts"
import type { Agent } from "./kit/agent.ts"
import type { Connector, Machine } from "./kit/connector.ts"
import { allRoots, hasAnyRoot } from "./kit/places.ts"
import { loadOutside, type UnloadedAgent } from "./outside.ts"
import { agents, isDexSource } from "./registry.ts"

/** The sources to load: those that have a folder on the machine, and `stored` ones, whose records may have to be parsed again. */
export type WantedSources = { machine: Machine; stored: readonly SourceId[] }

/**
 * Loads the connectors of the built-in agents that `wanted` selects, and of the agents that the user added. Without `wanted`,
 * loads those of all built-in agents, for a caller that waits for new agents.
 */
export async function loadConnectors(
  names: readonly string[] = [],
  dexDir = "",
  wanted?: WantedSources,
): Promise<{ connectors: readonly Connector[]; unloaded: UnloadedAgent[] }> {
  const outside = await loadOutside(names, dexDir)
  const builtIn = agents.filter((agent) => wanted === undefined || isWanted(agent, wanted))
  const loaded = await Promise.all([...builtIn, ...outside.agents].flatMap(({ connector }) => connector?.() ?? []))
  return { connectors: loaded.map(withOtherHomes), unloaded: outside.unloaded }
}

/** Loads the connector for a source. Returns undefined if there is none. */
export async function loadConnector(
  source: SourceId,
  names: readonly string[],
  dexDir: string,
): Promise<Connector | undefined> {
  const agent = agents.find((candidate) => candidate.source === source)
  if (agent) return agent.connector?.()
  const outside = await loadOutside(names, dexDir)
  return outside.agents.find((candidate) => candidate.source === source)?.connector()
}

function isWanted({ source, roots }: Agent, { machine, stored }: WantedSources): boolean {
  return stored.includes(source) || (roots !== undefined && hasAnyRoot(roots, machine))
}

/** Makes a connector search the other homes too, except for dex's own sources, which are only in dex's folder. */
function withOtherHomes(connector: Connector): Connector {
  if (isDexSource(connector.source)) return connector
  const roots = (machine: Machine) => allRoots((each) => connector.roots(each), machine)
  return Object.assign(Object.create(connector) as Connector, { roots })
}
