import type { Message } from "./conversation.ts"

/** What each call was made with, by its id. */
export function callTexts(messages: readonly Pick<Message, "parts">[]): Map<string, string> {
  const calls = new Map<string, string>()
  for (const { parts } of messages)
    for (const part of parts)
      if (part.type === "tool_call" && part.call_id !== undefined) calls.set(part.call_id, part.text)
  return calls
}
