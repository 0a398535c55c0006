import type { Dex } from "../tools/context.ts"

/** Codex tells with each call which thread it is; in the environment of a server it does not. */
const CODEX_TURN = "x-codex-turn-metadata"

/** The machine as this call sees it: with the caller's session, where the caller tells it. */
export function machineOf({ machine }: Dex, meta: Record<string, unknown> | undefined): Dex["machine"] {
  const turn = asObject(meta?.[CODEX_TURN])
  const thread = turn?.thread_id ?? turn?.session_id
  return typeof thread === "string" ? { ...machine, env: { ...machine.env, CODEX_THREAD_ID: thread } } : machine
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  if (typeof value === "object" && value !== null) return value as Record<string, unknown>
  if (typeof value !== "string") return undefined
  try {
    return asObject(JSON.parse(value) ?? undefined)
  } catch {
    return undefined // not JSON: then it says nothing to us
  }
}
