import type { SourceId } from "../core/conversation.ts"
import type { Agent } from "./kit/agent.ts"
import type { Connector, Machine } from "./kit/connector.ts"
import { allRoots, hasAnyRoot } from "./kit/places.ts"
import { loadOutside, type UnloadedAgent } from "./outside.ts"
import { agents, isDexSource } from "./registry.ts"

/** `machine` is where to look. `kept` are the sources with stored records, which may have to be parsed again. */
export type WantedSources = { machine: Machine; kept: readonly SourceId[] }

/**
 * Loads the connectors of dex's own agents that are installed, and of those that the user named. Without `wanted`, loads all of
 * them, for a caller that waits for new agents.
 */
export async function loadConnectors(
  names: readonly string[] = [],
  dexDir = "",
  wanted?: WantedSources,
): Promise<{ connectors: readonly Connector[]; unloaded: UnloadedAgent[] }> {
  const outside = await loadOutside(names, dexDir)
  const own = agents.filter((agent) => wanted === undefined || isWanted(agent, wanted))
  const loaded = await Promise.all([...own, ...outside.agents].flatMap(({ connector }) => connector?.() ?? []))
  return { connectors: loaded.map(inEveryHome), unloaded: outside.unloaded }
}

/** Loads the connector for a source. Returns undefined if there is none. */
export async function loadConnector(
  source: SourceId,
  names: readonly string[],
  dexDir: string,
): Promise<Connector | undefined> {
  const agent = agents.find((one) => one.source === source)
  if (agent) return agent.connector?.()
  const outside = await loadOutside(names, dexDir)
  return outside.agents.find((one) => one.source === source)?.connector()
}

function isWanted({ source, roots }: Agent, { machine, kept }: WantedSources): boolean {
  return kept.includes(source) || (roots !== undefined && hasAnyRoot(roots, machine))
}

/** dex's own sources are read only from dex's own folder. */
function inEveryHome(connector: Connector): Connector {
  if (isDexSource(connector.source)) return connector
  const roots = (machine: Machine) => allRoots((one) => connector.roots(one), machine)
  return Object.assign(Object.create(connector) as Connector, { roots })
}
