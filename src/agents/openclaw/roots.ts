import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** The names that it had before. */
const FORMER = [".clawdbot", ".moldbot", ".moltbot"]

export function openclawRoots({ home, env }: Machine): string[] {
  const given = env.OPENCLAW_STATE_DIR?.trim() || env.CLAWDBOT_STATE_DIR?.trim()
  const own = env.OPENCLAW_HOME?.trim() || home
  const folders = given
    ? [given.replace(/^~(?=$|[\\/])/, own)]
    : [".openclaw", ...FORMER].map((name) => join(own, name))
  return folders.map((folder) => join(folder, "agents"))
}
