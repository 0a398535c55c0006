import { agents } from "../agents/registry.ts"
import type { Dex } from "../tools/context.ts"

/** The machine as this call sees it: with the caller's session, where the caller tells it. */
export function machineOf({ machine }: Dex, meta: Record<string, unknown> | undefined): Dex["machine"] {
  for (const { session } of meta ? agents : []) {
    const id = session?.inCall?.(meta!)
    if (id !== undefined) return { ...machine, env: { ...machine.env, [session!.variable]: id } }
  }
  return machine
}
