import type { ModelReply, ModelTool, ToolCall } from "./model.ts"

/** A call as it was streamed. */
export type Spoken = { id: string; name: string; raw: string; extra?: Record<string, unknown> }

const MOST_RAW = 2_000

/** Never throws: what cannot be run comes back with the reason, so that the model can be told. */
export function readCalls(calls: Spoken[], tools: ModelTool[], finish: ModelReply["finish"]): ToolCall[] {
  return calls.map(({ id, name, raw, extra }) => {
    const read = readInput(raw)
    const reason =
      name.trim() === ""
        ? "The call names no tool."
        : !tools.some((tool) => tool.name === name)
          ? `There is no tool of that name. There are: ${tools.map((tool) => tool.name).join(", ") || "none"}.`
          : "ok" in read
            ? undefined
            : finish === "length"
              ? "The call was cut off: the reply had reached its limit of tokens."
              : read.wrong
    return {
      id,
      name,
      input: reason === undefined && "ok" in read ? read.ok : undefined,
      invalid: reason === undefined ? undefined : { reason, raw: raw.slice(0, MOST_RAW) },
      extra,
    }
  })
}

function readInput(raw: string): { ok: object } | { wrong: string } {
  if (raw.trim() === "") return { ok: {} }
  try {
    const value: unknown = JSON.parse(raw)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ok: value }
    return { wrong: "The arguments must be a JSON object." }
  } catch {
    return { wrong: "The arguments are not valid JSON." }
  }
}
