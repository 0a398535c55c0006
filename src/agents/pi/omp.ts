import { type RawRecord, string } from "../../core/record.ts"
import type { Connector } from "../kit/connector.ts"

/** omp keeps a session's title in the first line, which it rewrites in place. */
export function ompDifferences(parent: Connector): Partial<Connector> {
  return {
    parse: (raw, unit) => {
      const records = [...raw]
      const { conversations, unknown } = parent.parse(records, unit)
      const text = string(records.findLast(({ type }: RawRecord) => type === "title")?.title)
      const titled = conversations.map((one) =>
        text === undefined || one.title ? one : { ...one, title: { text, from: "agent" as const } },
      )
      return { conversations: titled, unknown }
    },
  }
}
