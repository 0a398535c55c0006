import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { INDEX_FILE } from "../src/core/formats.ts"
import { DEX, shortCount, sizeOf, time, timeWithMemory } from "./measure.ts"
import { ordinaryWords, writeTranscripts } from "./prepare.ts"
import type { Row } from "./report.ts"

const SEARCHES = 4

/** The memory of a first sync and of searches, including all their processes, and the disk space of the history. */
export function benchResources(sizes = "100000,1000000,genuine"): Row[] {
  return sizes.split(",").flatMap((size) => measured(size === "genuine" ? size : Number(size)))
}

function measured(messages: number | "genuine"): Row[] {
  const name = messages === "genuine" ? "the genuine corpus" : `${shortCount(messages)} messages`
  const folder = mkdtempSync(join(tmpdir(), "dex-bench-resources-"))
  try {
    const home = join(folder, "home")
    const env = { HOME: home, CLAUDE_CONFIG_DIR: join(folder, "transcripts") }
    writeTranscripts(folder, env.CLAUDE_CONFIG_DIR, messages)
    mkdirSync(home)
    const sync = timeWithMemory([DEX, "sync"], env)
    if (sync.code !== 0) throw new Error(sync.stderr)
    const index = join(home, ".dex", INDEX_FILE)
    const words = ordinaryWords(index).slice(0, SEARCHES)
    const searches = words.map((word) => timeWithMemory([DEX, "search", word], env).rssMb)
    const stats = JSON.parse(time([DEX, "stats", "--json"], env).stdout) as { text_bytes: number }
    const disk = sizeOf(join(home, ".dex/history.db"), index)
    const memory = (what: string, mb: number): Row => ({
      ...{ what: `memory of ${what}, ${name}`, measured: `${mb.toFixed(0)} MB`, floor: "" },
      ...{ goal: "< 300 MB", ok: mb < 300 },
    })
    return [
      memory("a first sync", sync.rssMb),
      memory("a search", Math.max(...searches)),
      {
        what: `disk, with raw records, ${name}`,
        measured: `${(disk / stats.text_bytes).toFixed(2)} × the text (${(disk / 1e6).toFixed(0)} MB)`,
        floor: "",
        goal: "≤ 1.5 ×",
        ok: disk / stats.text_bytes <= 1.5,
      },
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
