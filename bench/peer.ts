import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { INDEX_FILE } from "../src/core/formats.ts"
import { generateCorpus } from "./corpus.ts"
import { DEX, sizeOf, time } from "./measure.ts"
import { median, type Row } from "./report.ts"

const MESSAGES = 120_000
const QUERIES = ["function error", "docker", "import const return", "test file", "zebra"]

/**
 * Compares agentdex 0.4.2 with dex: the same transcripts, the same machine, the same run. Only prompts and answers, because it
 * does not store tool results as messages. Its own better-sqlite3 does not start on this Node, so it gets ours.
 */
export function benchPeer(): Row[] {
  const dir = mkdtempSync(join(tmpdir(), "dex-bench-peer-"))
  const npm = (...args: string[]) => execFileSync("npm", args, { cwd: dir, stdio: "ignore" })
  try {
    npm("init", "-y")
    npm("install", "--ignore-scripts", "agentdex@0.4.2")
    npm("install", "--ignore-scripts", "--force", "better-sqlite3@13.0.3")
    rmSync(join(dir, "node_modules/agentdex/node_modules/better-sqlite3"), { recursive: true, force: true })
    const theirs = join(dir, "node_modules/agentdex/dist/index.js")
    const homes = { mine: join(dir, "mine"), theirs: join(dir, "theirs") }
    for (const home of Object.values(homes)) {
      mkdirSync(home)
      generateCorpus(join(home, ".claude"), { messages: MESSAGES, seed: 21, plain: true })
    }
    const env = { HOME: homes.theirs, LANCEDB_LOG: "error" }
    const theirSync = time([theirs, "sync"], env)
    const mySync = time([DEX, "sync"], { HOME: homes.mine })
    if (theirSync.code !== 0 || mySync.code !== 0) throw new Error(`${theirSync.stderr}${mySync.stderr}`)
    const theirSearch = median(QUERIES.map((query) => time([theirs, "search", query], env).ms))
    const mySearch = median(QUERIES.map((query) => time([DEX, "search", query], { HOME: homes.mine }).ms))
    const theirDisk = Number(
      execFileSync("du", ["-sb", join(homes.theirs, ".dex")], { encoding: "utf8" }).split("\t")[0],
    )
    const myDisk = sizeOf(join(homes.mine, ".dex/history.db"), join(homes.mine, `.dex/${INDEX_FILE}`))
    const what = (thing: string) => `${thing}, 120,000 messages, agentdex 0.4.2 beside it`
    return [
      {
        what: what("sync"),
        measured: `${(mySync.ms / 1000).toFixed(1)} s, ${(theirSync.ms / mySync.ms).toFixed(1)} × faster`,
        floor: `agentdex ${(theirSync.ms / 1000).toFixed(1)} s`,
        goal: "≥ 4 × faster",
        ok: theirSync.ms / mySync.ms >= 4,
      },
      {
        what: what("search"),
        measured: `${mySearch.toFixed(0)} ms, ${(theirSearch / mySearch).toFixed(1)} × faster`,
        floor: `agentdex ${theirSearch.toFixed(0)} ms`,
        goal: "≥ 10 × faster",
        ok: theirSearch / mySearch >= 10,
      },
      {
        what: what("disk"),
        measured: `${(myDisk / 1e6).toFixed(0)} MB, ${(myDisk / theirDisk).toFixed(2)} of it`,
        floor: `agentdex ${(theirDisk / 1e6).toFixed(0)} MB`,
        goal: "≤ a quarter",
        ok: myDisk / theirDisk <= 0.25,
      },
    ]
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
