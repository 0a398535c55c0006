import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"

/** What may be found instead of a file, in a home or a project that somebody else controls. */
export const OBSTACLES = {
  "a pipe that nobody writes into": (path: string) => void execFileSync("mkfifo", [path]),
  "a link to a device without an end": (path: string) => symlinkSync("/dev/zero", path),
  "a folder": (path: string) => void mkdirSync(path),
  "a file of a gigabyte": (path: string) => {
    writeFileSync(path, "")
    truncateSync(path, 1 << 30)
  },
} satisfies Record<string, (path: string) => void>

export type Obstacle = keyof typeof OBSTACLES

/** Replaces whatever is at the path with the obstacle. */
export function obstruct(path: string, with_: Obstacle): void {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { recursive: true, force: true })
  OBSTACLES[with_](path)
}
