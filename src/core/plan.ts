import type { Part } from "./conversation.ts"
import { parseObject } from "./record.ts"

// Finds plans that the agent wrote and the person approved. Such a plan counts as part of what the person asked for.

/** The text with which an agent begins a new session from an approved plan. */
export const PLAN_OPENING = "Implement the following plan:"

/** The fields of a part that show whether it contains a plan. */
type PlanPart = Pick<Part, "type" | "text"> & { origin: string; tool?: string; call_id?: string; is_error?: boolean }

/**
 * Finds the plan in a prompt that starts with PLAN_OPENING, or in a tool result that says that the person approved a plan. If
 * that result does not repeat the plan, takes it from the input of the call, which `calls` contains by id.
 */
export function findPlan(part: PlanPart, calls: ReadonlyMap<string, string> = new Map()): string | undefined {
  if (part.type === "text") {
    const text = part.origin === "agent" ? part.text.trimStart() : ""
    return text.startsWith(PLAN_OPENING) ? text.slice(PLAN_OPENING.length).trimStart() : undefined
  }
  if (part.type !== "tool_result" || part.tool !== "ExitPlanMode" || part.is_error) return undefined
  if (!/\bapproved\b/.test(part.text.slice(0, 200))) return undefined
  const [heading] = /\n## Approved Plan[^\n]{0,60}\n/.exec(part.text) ?? []
  if (heading !== undefined) return part.text.slice(part.text.indexOf(heading) + heading.length).trimStart()
  const input = parseObject((part.call_id !== undefined && calls.get(part.call_id)) || "")
  return typeof input?.plan === "string" ? input.plan : undefined
}
