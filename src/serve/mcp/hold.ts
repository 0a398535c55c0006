import { statSync } from "node:fs"
import type { Dex } from "../../tools/context.ts"

type Closable = Dex & { close(): void }

/**
 * Keeps the databases open between calls, for as long as they are the same files: another process may forget, rebuild or switch
 * them at any time. They are also reopened after an error. Databases that a running call uses are closed after it.
 */
export function reuseDex(create: () => Closable): <T>(work: (dex: Dex) => Promise<T>) => Promise<T> {
  let held: { dex: Closable; files: string; users: number } | undefined
  const letGo = (one: NonNullable<typeof held>) => {
    if (held === one) held = undefined
    if (one.users === 0) one.dex.close()
  }
  return async (work) => {
    if (held && held.files !== filesOf(held.dex)) letGo(held)
    if (!held) {
      const dex = create()
      held = { dex, files: filesOf(dex), users: 0 }
    }
    const used = held
    used.users++
    let failed = true
    try {
      const result = await work(used.dex)
      failed = false
      return result
    } finally {
      used.users--
      if (failed || held !== used) letGo(used)
    }
  }
}

function filesOf({ home }: Dex): string {
  return [home.history, home.index, home.suggest, home.knowledge, home.spending]
    .map((path) => statSync(path, { throwIfNoEntry: false })?.ino ?? "none")
    .join()
}
