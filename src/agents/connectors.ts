import type { SourceId } from "../core/conversation.ts"
import type { Agent } from "./kit/agent.ts"
import type { Connector, Machine } from "./kit/connector.ts"
import { everyRoot, isThere } from "./kit/places.ts"
import { loadOutside, type Unloaded } from "./outside.ts"
import { agents, isOwn } from "./registry.ts"

/** `machine`: where to look. `kept`: the sources that something is stored of, which may have to be parsed again. */
export type Wanted = { machine: Machine; kept: readonly SourceId[] }

/**
 * What dex reads, loaded: its own agents, as far as they are there, and those that the user named. Without `wanted`, all of
 * them, for who waits for agents to come.
 */
export async function loadConnectors(
  names: readonly string[] = [],
  dexDir = "",
  wanted?: Wanted,
): Promise<{ connectors: readonly Connector[]; unloaded: Unloaded[] }> {
  const outside = await loadOutside(names, dexDir)
  const own = agents.filter((agent) => wanted === undefined || isWanted(agent, wanted))
  const loaded = await Promise.all([...own, ...outside.agents].flatMap(({ connector }) => connector?.() ?? []))
  return { connectors: loaded.map(lookingEverywhere), unloaded: outside.unloaded }
}

/** The one that reads a source; undefined where nobody does. */
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

function isWanted({ source, roots }: Agent, { machine, kept }: Wanted): boolean {
  return kept.includes(source) || (roots !== undefined && isThere(roots, machine))
}

/** What dex keeps itself is only read in its own folder. */
function lookingEverywhere(connector: Connector): Connector {
  if (isOwn(connector.source)) return connector
  const roots = (machine: Machine) => everyRoot((one) => connector.roots(one), machine)
  return Object.assign(Object.create(connector) as Connector, { roots })
}
