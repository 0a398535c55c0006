import type { ModelReply, ModelTool, ToolCall } from "./model.ts"

/** A tool call as the server streamed it. `raw` is the text of its arguments. */
export type RawCall = { id: string; name: string; raw: string; extra?: Record<string, unknown> }

const MAX_RAW_CHARS = 2_000

/** Reads the calls of a reply. Never throws: a call that cannot be run is returned with a reason for the model. */
export function readCalls(calls: RawCall[], tools: ModelTool[], finish: ModelReply["finish"]): ToolCall[] {
  return calls.map(({ id, name, raw, extra }) => {
    const parsed = readInput(raw)
    const reason =
      name.trim() === ""
        ? "The call names no tool."
        : !tools.some((tool) => tool.name === name)
          ? `There is no tool with that name. The tools are: ${tools.map((tool) => tool.name).join(", ") || "none"}.`
          : "ok" in parsed
            ? undefined
            : finish === "length"
              ? "The call was cut off, because the reply reached its token limit."
              : parsed.problem
    return {
      id,
      name,
      input: reason === undefined && "ok" in parsed ? parsed.ok : undefined,
      invalid: reason === undefined ? undefined : { reason, raw: raw.slice(0, MAX_RAW_CHARS) },
      extra,
    }
  })
}

function readInput(raw: string): { ok: object } | { problem: string } {
  if (raw.trim() === "") return { ok: {} }
  try {
    const value: unknown = JSON.parse(raw)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ok: value }
    return { problem: "The arguments must be a JSON object." }
  } catch {
    return { problem: "The arguments are not valid JSON." }
  }
}

/**
 * Finds JSON in a model's reply: the complete reply, the content of a fence, or a passage between other words. Returns undefined
 * if there is no complete JSON; nothing is repaired.
 */
export function findJson(text: string): unknown {
  const fenced = text.split("```").flatMap((piece, i) => (i % 2 === 1 ? [piece.replace(/^[a-z]*\n/i, "")] : []))
  const start = text.search(/[[{]/)
  const end = Math.max(text.lastIndexOf("}"), text.lastIndexOf("]"))
  for (const candidate of [text, ...fenced, start === -1 ? "" : text.slice(start, end + 1)]) {
    try {
      return JSON.parse(candidate)
    } catch {
      // the next candidate may be valid
    }
  }
  return undefined
}

/** `cost_usd` is the sum of the costs that providers reported. Absent if none did. */
export type ModelUsage = { input: number; output: number; is_estimate: boolean; cost_usd?: number }

export function addModelUsage(total: ModelUsage, { input, output, is_estimate, cost_usd }: ModelUsage): void {
  total.input += input
  total.output += output
  total.is_estimate ||= is_estimate
  if (cost_usd !== undefined) total.cost_usd = (total.cost_usd ?? 0) + cost_usd
}

/** Returns the usage between two readings of a model's total usage. */
export function usageBetween<U extends ModelUsage & { requests: number }>(now: U, before: U): U {
  return {
    ...now,
    input: now.input - before.input,
    output: now.output - before.output,
    requests: now.requests - before.requests,
    cost_usd: now.cost_usd === undefined ? undefined : now.cost_usd - (before.cost_usd ?? 0),
  }
}
