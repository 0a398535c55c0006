import { agents } from "./index.ts"
import type { Connector } from "./kit/connector.ts"

/** Everything that dex can read, loaded. */
export async function loadConnectors(): Promise<readonly Connector[]> {
  return Promise.all(agents.flatMap(({ connector }) => connector?.() ?? []))
}
