import type { SourceId } from "../core/conversation.ts"
import type { Agent } from "./kit/agent.ts"
import type { Connector, Machine } from "./kit/connector.ts"
import { allRoots, hasAnyRoot } from "./kit/places.ts"
import { loadOutside, type UnloadedAgent } from "./outside.ts"
import { agents, isDexSource } from "./registry.ts"

/**
 * Selects the built-in agents to load: those with a folder on the machine, and `stored` ones, whose records may be parsed again.
 */
export type WantedSources = { machine: Machine; stored: readonly SourceId[] }

/**
 * Loads the connectors of the built-in agents that `wanted` selects, and of the agents that the user added. If `wanted` is
 * omitted, loads the connectors of all built-in agents, for callers that wait for new agents.
 */
export async function loadConnectors(
  names: readonly string[] = [],
  dexDir = "",
  wanted?: WantedSources,
): Promise<{ connectors: readonly Connector[]; unloaded: UnloadedAgent[] }> {
  const outsideAgents = await loadOutside(names, dexDir)
  const builtIn = agents.filter((agent) => wanted === undefined || isWanted(agent, wanted))
  const loadedConnectors = await Promise.all(
    [...builtIn, ...outsideAgents.agents].flatMap(({ connector }) => connector?.() ?? []),
  )
  return { connectors: loadedConnectors.map(withOtherHomes), unloaded: outsideAgents.unloaded }
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

/** Returns a connector that also searches the other homes, except for dex's own sources, which are only in dex's folder. */
function withOtherHomes(connector: Connector): Connector {
  if (isDexSource(connector.source)) return connector
  const roots = (machine: Machine) => allRoots((each) => connector.roots(each), machine)
  return Object.assign(Object.create(connector) as Connector, { roots })
}
