import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Home } from "../config/home.ts"
import { integer, object, optional, readAs, text } from "../core/schema.ts"

/** Where the view is: the port and the path stay, so that bookmarks do; the key is that of the one that runs. */
export type ViewPlace = { port: number; base: string; key?: string; pid?: number }

const shape = object({ port: integer(), base: text(), key: optional(text()), pid: optional(integer()) })

export function placeOf(home: Pick<Home, "dir">): ViewPlace | undefined {
  try {
    const read = readAs(shape, JSON.parse(readFileSync(file(home), "utf8")) as unknown)
    return "ok" in read && /^\/\w{8,}$/.test(read.ok.base) ? read.ok : undefined
  } catch {
    return undefined // none yet, or it cannot be read: another one is made
  }
}

/** Never fails: without it the next one has another address. */
export function keepPlace(home: Pick<Home, "dir">, place: ViewPlace): void {
  try {
    mkdirSync(home.dir, { recursive: true, mode: 0o700 })
    const whole = `${file(home)}.${process.pid}`
    writeFileSync(whole, `${JSON.stringify(place)}\n`, { mode: 0o600 })
    renameSync(whole, file(home))
  } catch {
    // A read-only folder or a full disk.
  }
}

function file({ dir }: Pick<Home, "dir">): string {
  return join(dir, "view.json")
}
