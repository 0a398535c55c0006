import { statSync } from "node:fs"
import type { Dex } from "../../tools/context.ts"

type Closable = Dex & { close(): void }

/**
 * Keeps the databases open between calls. They are opened again after an error, or if another process has replaced one of their
 * files. Databases that a running call uses are closed after that call.
 */
export function reuseDex(create: () => Closable): <T>(work: (dex: Dex) => Promise<T>) => Promise<T> {
  let current: { dex: Closable; inodes: string; users: number } | undefined
  const release = (one: NonNullable<typeof current>) => {
    if (current === one) current = undefined
    if (one.users === 0) one.dex.close()
  }
  return async (work) => {
    if (current && current.inodes !== inodesOf(current.dex)) release(current)
    if (!current) {
      const dex = create()
      current = { dex, inodes: inodesOf(dex), users: 0 }
    }
    const used = current
    used.users++
    let failed = true
    try {
      const result = await work(used.dex)
      failed = false
      return result
    } finally {
      used.users--
      if (failed || current !== used) release(used)
    }
  }
}

function inodesOf({ home }: Dex): string {
  return [home.history, home.index, home.suggest, home.knowledge, home.spending]
    .map((path) => statSync(path, { throwIfNoEntry: false })?.ino ?? "none")
    .join()
}
