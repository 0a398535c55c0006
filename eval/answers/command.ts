import { execFile, execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { CACHE_DIR } from "../home.ts"
import { layOutSample, type Place } from "./decisions-home.ts"
import type { Project } from "./project.ts"

/** A built dex, of any version, with the genuine conversations, and perhaps other agents' recordings, in its history. */
export type BuiltDex = { json<T>(args: string[]): Promise<T> }

/** Finding nothing is an answer too. */
const NOTHING_FOUND = 1

export function builtDex(root: string, name: string, { clone, claude }: Project, recordings: Place[] = []): BuiltDex {
  const home = join(CACHE_DIR, `answers-${name}`)
  mkdirSync(home, { recursive: true })
  for (const recording of recordings) layOutSample(home, recording)
  const { DEX_HOME: _, ...env } = process.env
  const options = {
    cwd: clone,
    env: { ...env, HOME: home, CLAUDE_CONFIG_DIR: claude, DEX_TRACES: "off", NO_COLOR: "1" },
    maxBuffer: 64 * 1024 * 1024,
  }
  const file = join(root, "dist/dex.js")
  execFileSync(process.execPath, [file, "sync", "--json"], { ...options, stdio: "ignore" })
  return {
    async json(args) {
      const { stdout } = await promisify(execFile)(process.execPath, [file, ...args, "--json"], options).catch(
        (error: { code?: unknown; stdout: string }) => {
          if (error.code === NOTHING_FOUND) return error
          throw error
        },
      )
      return JSON.parse(stdout)
    },
  }
}
