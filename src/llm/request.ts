import type { LlmSettings, ModelMessage, ModelRequest, ToolCall } from "./model.ts"

/** The parameters that a server does not accept. They are learned from its refusals, and remembered while the model is open. */
export type UnsupportedParameters = Set<"max_tokens" | "temperature" | "response_format" | "stream_options">

const REFUSAL_SIGNS = [
  // OpenAI's reasoning models: "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead."
  ["max_tokens", /max_completion_tokens/],
  ["temperature", /temperature/],
  ["response_format", /response_format|json_schema|structured output/i],
  ["stream_options", /stream_options|include_usage/],
] as const

/**
 * Adds the parameter that a refusal names. Returns true if it is new, in which case a changed request may succeed.
 */
export function learnFromRefusal(unsupported: UnsupportedParameters, status: number, serverMessage: string): boolean {
  if (status !== 400 && status !== 422) return false
  const sign = REFUSAL_SIGNS.find(([name, pattern]) => !unsupported.has(name) && pattern.test(serverMessage))
  if (sign) unsupported.add(sign[0])
  return sign !== undefined
}

/** Returns the body of a request in the form that this server accepts. */
export function bodyFor(
  settings: LlmSettings,
  request: ModelRequest,
  maxTokens: number,
  unsupported: UnsupportedParameters,
) {
  const { system, messages, tools = [], json_schema: schema, temperature = settings.temperature } = request
  const accepts = (name: typeof unsupported extends Set<infer N> ? N : never) => !unsupported.has(name)
  return {
    model: settings.model,
    [accepts("max_tokens") ? "max_tokens" : "max_completion_tokens"]: maxTokens,
    temperature: accepts("temperature") ? temperature : undefined,
    response_format:
      schema && accepts("response_format")
        ? { type: "json_schema", json_schema: { name: "response", schema, strict: false } }
        : undefined,
    messages: [...(system === "" ? [] : [{ role: "system", content: system }]), ...messages.flatMap(wireMessages)],
    tools:
      tools.length > 0
        ? tools.map(({ name, description, input_schema: parameters }) => ({
            type: "function",
            function: { name, description, parameters },
          }))
        : undefined,
    stream: true,
    stream_options: accepts("stream_options") ? { include_usage: true } : undefined,
  }
}

function wireMessages(message: ModelMessage): object[] {
  if (message.role === "tool")
    return message.results.map(({ id, output }) => ({ role: "tool", tool_call_id: id, content: output }))
  const { role, content } = message
  if (!("calls" in message) || message.calls.length === 0) return [{ role, content }]
  return [{ role, content: content || null, tool_calls: message.calls.map(wireCall) }]
}

/** Returns a call in a valid form, because servers refuse a complete history if it contains one of their own invalid calls. */
function wireCall({ id, name, input, extra }: ToolCall): object {
  return {
    id,
    type: "function",
    function: {
      name: name.replace(/[^\w-]+/g, "_").slice(0, 64) || "invalid",
      arguments: JSON.stringify(input ?? {}),
    },
    extra_content: extra,
  }
}
