import type { ModelReply, ModelTool, ToolCall } from "./model.ts"

/** A tool call as the server streamed it. */
export type RawCall = { id: string; name: string; raw: string; extra?: Record<string, unknown> }

const MAX_RAW = 2_000

/** Reads the calls of a reply. Never throws: a call that cannot be run is returned with a reason for the model. */
export function readCalls(calls: RawCall[], tools: ModelTool[], finish: ModelReply["finish"]): ToolCall[] {
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
      invalid: reason === undefined ? undefined : { reason, raw: raw.slice(0, MAX_RAW) },
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

/**
 * The JSON in a model's reply: the complete reply, inside a fence, or after some words. Undefined if there is no complete JSON;
 * nothing is repaired.
 */
export function findJson(text: string): unknown {
  const fenced = text.split("```").flatMap((piece, i) => (i % 2 === 1 ? [piece.replace(/^[a-z]*\n/i, "")] : []))
  const first = text.search(/[[{]/)
  const last = Math.max(text.lastIndexOf("}"), text.lastIndexOf("]"))
  for (const candidate of [text, ...fenced, first === -1 ? "" : text.slice(first, last + 1)]) {
    try {
      return JSON.parse(candidate)
    } catch {
      // the next candidate may be valid
    }
  }
  return undefined
}

/** `cost_usd`: the sum of what providers reported, if any did. */
export type ModelUsage = { input: number; output: number; is_estimate: boolean; cost_usd?: number }

export function addModelUsage(total: ModelUsage, { input, output, is_estimate, cost_usd }: ModelUsage): void {
  total.input += input
  total.output += output
  total.is_estimate ||= is_estimate
  if (cost_usd !== undefined) total.cost_usd = (total.cost_usd ?? 0) + cost_usd
}

/** The usage between two readings. */
export function usageBetween<U extends ModelUsage & { requests: number }>(now: U, before: U): U {
  return {
    ...now,
    input: now.input - before.input,
    output: now.output - before.output,
    requests: now.requests - before.requests,
    cost_usd: now.cost_usd === undefined ? undefined : now.cost_usd - (before.cost_usd ?? 0),
  }
}
