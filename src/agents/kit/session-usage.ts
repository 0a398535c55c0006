import type { Message } from "../../core/conversation.ts"
import type { Usage } from "../../core/usage.ts"

/** For agents that count a session's tokens together, and name one model for it: the last answer has them all. */
export function addSessionUsage(messages: Message[], model: string | undefined, usage: Usage | undefined): void {
  const answers = messages.filter(({ role }) => role === "assistant")
  if (model !== undefined) for (const answer of answers) answer.model = model
  if (usage && answers.length > 0) answers.at(-1)!.usage = usage
}
