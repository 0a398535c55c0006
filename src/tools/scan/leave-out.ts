import type { StoredMessage } from "../../store/history/store.ts"

/** What can be left out of a scan, the least telling first. What people and agents say stays. */
export const LEAVABLE = ["results", "asides", "calls", "failures"] as const
export type Leavable = (typeof LEAVABLE)[number]

/** What each message is; undefined for those that say something. */
export function leavableOf(messages: readonly StoredMessage[]): (Leavable | undefined)[] {
  const failed = new Set<string>()
  for (const { parts, effects } of messages) {
    for (const part of parts)
      if (part.type === "tool_result" && part.is_error && part.call_id !== undefined) failed.add(part.call_id)
    for (const effect of effects ?? [])
      if (effect.type === "command" && effect.call_id !== undefined && (effect.exit_status ?? 0) !== 0)
        failed.add(effect.call_id)
  }
  return messages.map(({ parts }) => {
    if (parts.some((part) => isSaid(part) || part.type === "image")) return undefined
    const used = parts.filter((part) => part.type === "tool_call" || part.type === "tool_result")
    if (used.length === 0) return "asides"
    const isFailure = used.some(
      (part) =>
        (part.type === "tool_result" && part.is_error) || (part.call_id !== undefined && failed.has(part.call_id)),
    )
    if (isFailure) return "failures"
    return used.some((part) => part.type === "tool_call") ? "calls" : "results"
  })
}

function isSaid({ type, origin, text }: StoredMessage["parts"][number]): boolean {
  return type === "summary" || (type === "text" && origin !== "injected" && text.trim() !== "")
}
