import type { Effect, Hunk, Part } from "../../core/conversation.ts"
import { commandEffect, commitEffects, editEffects, fileEffect, toolOrigin } from "./effects.ts"

/** What a call did, in the words that all agents' tools can be brought to. */
export type Deed = { command?: string; reads?: readonly string[]; hunks?: readonly Hunk[] }

/** A call and what became of it. `deed` is what it would have done: where it failed, nothing was read or changed. */
export type FinishedCall = {
  tool: string | undefined
  call_id: string | undefined
  output: string
  /** What the command itself printed, where its agent wrote more around it. */
  printed?: string
  failed: boolean
  exit_status?: number
  deed: Deed
  /** Where the tool's name does not say that a remote server answered. */
  isRemote?: boolean
}

export function finishedCall(call: FinishedCall): { part: Part; effects: Effect[] } {
  const { tool, call_id, output, exit_status, deed } = call
  const failed = call.failed || (exit_status !== undefined && exit_status !== 0)
  const hunks = failed ? [] : [...(deed.hunks ?? [])]
  const part: Part = {
    type: "tool_result",
    text: output,
    origin: call.isRemote ? "web" : toolOrigin(tool),
    tool,
    call_id,
    is_error: failed,
    hunks: hunks.length > 0 ? hunks : undefined,
  }
  const effects: Effect[] = editEffects(hunks, call_id)
  if (!failed) effects.push(...(deed.reads ?? []).map((path) => fileEffect(path, "read", call_id)))
  if (deed.command !== undefined) {
    const outcome = { failed, output: call.printed ?? output, call_id }
    effects.push(commandEffect(deed.command, { ...outcome, exit_status }))
    if (!failed) effects.push(...commitEffects(deed.command, output, call_id))
  }
  return { part, effects }
}

export function toolCallPart(tool: string | undefined, input: unknown, call_id: string | undefined): Part {
  return {
    type: "tool_call",
    text: typeof input === "string" ? input : JSON.stringify(input ?? {}),
    origin: "agent",
    tool: tool ?? "unknown",
    call_id,
  }
}
