import type { Part, Role } from "../core/conversation.ts"
import { findPlan } from "../core/plan.ts"

type SpeakerMessage = { role: Role; parts: readonly Part[] }

export type Speaker = { name: string; kind: "person" | "plan" | "agent" | "program" }

export function isFromPerson({ role, parts }: SpeakerMessage): boolean {
  return role === "user" && parts.some((part) => part.type === "text" && part.origin === "person")
}

export function messageSpeaker(message: SpeakerMessage, agent: string): Speaker {
  if (isFromPerson(message)) return { name: "You", kind: "person" }
  switch (message.role) {
    case "assistant":
      return { name: agent, kind: "agent" }
    case "document":
      return { name: "Section", kind: "agent" }
    case "user":
      return message.parts.some((part) => findPlan(part) !== undefined)
        ? { name: "Approved plan", kind: "plan" }
        : { name: "Prompt by an agent", kind: "program" }
    default:
      return { name: message.role === "tool" ? "Tool" : "System", kind: "program" }
  }
}
