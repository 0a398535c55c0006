import type { Part, Role } from "../core/conversation.ts"
import { planIn } from "../core/plan.ts"

type Spoken = { role: Role; parts: readonly Part[] }

/** Who is speaking: what they are called, and what kind of speaker they are. */
export type Speaker = { name: string; kind: "person" | "plan" | "agent" | "program" }

/** Whether a person wrote it. */
export function isPersons({ role, parts }: Spoken): boolean {
  return role === "user" && parts.some((part) => part.type === "text" && part.origin === "person")
}

/** `agent`: what the agent is called. */
export function speakerIn(message: Spoken, agent: string): Speaker {
  if (isPersons(message)) return { name: "You", kind: "person" }
  switch (message.role) {
    case "assistant":
      return { name: agent, kind: "agent" }
    case "document":
      return { name: "Section", kind: "agent" }
    case "user":
      return message.parts.some((part) => planIn(part) !== undefined)
        ? { name: "Approved plan", kind: "plan" }
        : { name: "Prompt by an agent", kind: "program" }
    default:
      return { name: message.role === "tool" ? "Tool" : "System", kind: "program" }
  }
}
