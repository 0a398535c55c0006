import type { Message, Origin, Title } from "../../core/conversation.ts"

const MAX_TITLE = 120

/** The first thing the person (to a subagent: its parent) said, on one line: the title where there is no other. */
export function firstPrompt(messages: Message[], speaker: Origin = "person"): Title | undefined {
  for (const { role, parts } of messages) {
    if (role !== "user") continue
    const said = parts.find((part) => part.type === "text" && part.origin === speaker)
    const text = said?.text
      .slice(0, 10 * MAX_TITLE)
      .replace(/\s+/g, " ")
      .trim()
      .slice(0, MAX_TITLE)
    if (text) return { text, from: "first_prompt" }
  }
  return undefined
}
