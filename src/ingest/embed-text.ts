import type { Part } from "../core/conversation.ts"

/** What a model is given of a message. A longer text says little more, and costs the same per word. */
const MOST_CHARS = 4_000
/** A call is known by its beginning; the rest is often a whole file. */
const CALL_CHARS = 300

/**
 * What somebody said in a message, and what was called, shortened. Undefined where there is nothing of the kind: what
 * tools returned, what hooks put in and what the agent thought is found by its words.
 */
export function textToEmbed({ parts }: { parts: Part[] }): string | undefined {
  const pieces: string[] = []
  for (const part of parts) {
    if (part.origin === "injected") continue
    if (part.type === "text") pieces.push(part.text)
    else if (part.type === "tool_call") pieces.push(`${part.tool}: ${part.text.slice(0, CALL_CHARS)}`)
  }
  const text = pieces.join("\n").trim().slice(0, MOST_CHARS).toWellFormed()
  return /[\p{L}\p{N}]/u.test(text) ? text : undefined
}
