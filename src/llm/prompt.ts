import type { OpenAICompatibleChatLanguageModel } from "@ai-sdk/openai-compatible"
import type { ModelMessage, ModelRequest, ToolCall } from "./model.ts"

export type SdkRequest = Parameters<OpenAICompatibleChatLanguageModel["doStream"]>[0]
type SdkMessage = SdkRequest["prompt"][number]

/** Our request in the SDK's words. */
export function sdkRequestOf({ system, messages, tools, json_schema }: ModelRequest): SdkRequest {
  const first: SdkMessage[] = system === "" ? [] : [{ role: "system", content: system }]
  return {
    prompt: [...first, ...messages.map(sdkMessage)],
    ...(tools &&
      tools.length > 0 && {
        tools: tools.map(({ name, description, input_schema }) => ({
          type: "function" as const,
          name,
          description,
          inputSchema: input_schema,
        })),
      }),
    ...(json_schema && { responseFormat: { type: "json" as const, schema: json_schema } }),
  }
}

function sdkMessage(message: ModelMessage): SdkMessage {
  if (message.role === "tool")
    return {
      role: "tool",
      content: message.results.map(({ id, name, output, is_error }) => ({
        type: "tool-result",
        toolCallId: id,
        toolName: name,
        output: { type: is_error ? "error-text" : "text", value: output },
      })),
    }
  const text = { type: "text" as const, text: message.content }
  if (message.role === "user") return { role: "user", content: [text] }
  return { role: "assistant", content: [text, ...("calls" in message ? message.calls.map(sdkCall) : [])] }
}

/** Servers refuse a whole history over one call of theirs that was not valid: it goes back in a form that is. */
function sdkCall({ id, name, input, extra }: ToolCall) {
  return {
    type: "tool-call" as const,
    toolCallId: id,
    toolName: name.replace(/[^\w-]+/g, "_").slice(0, 64) || "invalid",
    input: input ?? {},
    ...(extra && { providerOptions: extra as NonNullable<SdkMessage["providerOptions"]> }),
  }
}
