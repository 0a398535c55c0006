import { agents } from "./index.ts"
import type { Connector } from "./kit/connector.ts"
import { loadOutside, type Unloaded } from "./outside.ts"

/** Everything that dex can read, loaded: its own, and those that the user named. */
export async function loadConnectors(
  names: readonly string[] = [],
  dexDir = "",
): Promise<{ connectors: readonly Connector[]; unloaded: Unloaded[] }> {
  const outside = await loadOutside(names, dexDir)
  const connectors = await Promise.all([...agents, ...outside.agents].flatMap(({ connector }) => connector?.() ?? []))
  return { connectors, unloaded: outside.unloaded }
}
