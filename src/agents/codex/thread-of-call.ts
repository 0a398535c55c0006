import { isRecord, parseObject, string } from "../../core/record.ts"

/** Codex tells with each call which thread it is; in the environment of a server it does not. */
const TURN = "x-codex-turn-metadata"

export function threadOfCall(meta: Record<string, unknown>): string | undefined {
  const told = meta[TURN]
  const turn = typeof told === "string" ? parseObject(told) : isRecord(told) ? told : undefined
  return string(turn?.thread_id) ?? string(turn?.session_id)
}
