import type { Agent } from "../agent.ts"
import type { Connector } from "./connector.ts"

export type Variant = Pick<Agent, "source" | "name" | "aliases" | "basis" | "resume" | "open"> & {
  roots: NonNullable<Agent["roots"]>
  /** What it does otherwise than the agent whose format it has. */
  differs?: (parent: Connector) => Promise<Partial<Connector>>
}

/** An agent that writes what another one writes, in a folder of its own: read by that one's code, under its own name. */
export function variantOf(parent: Agent, { differs, ...own }: Variant): Agent {
  return {
    ...own,
    variantOf: parent.source,
    printedMarks: parent.printedMarks,
    connector: async () => {
      const read = await parent.connector!()
      return { ...read, ...(await differs?.(read)), source: own.source, roots: own.roots }
    },
  }
}
