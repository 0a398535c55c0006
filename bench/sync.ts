import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { INDEX_FILE } from "../src/core/formats.ts"
import { generateCorpus } from "./corpus.ts"
import { DEX, median, ROOT, type Row, sizeOf, time, timeWithMemory } from "./measure.ts"
import { benchLongest } from "./search.ts"

const RUNS = 5

/** Cold sync of the genuine corpus beside its floor, and the disk it takes. */
export function benchGenuine(): Row[] {
  const archive = join(ROOT, "../shared/corpus/claude-code-real.tar.xz")
  if (!existsSync(archive)) {
    console.log("NOT RUN: the genuine corpus is not here (../shared/corpus)")
    return []
  }
  const dir = mkdtempSync(join(tmpdir(), "dex-bench-genuine-"))
  try {
    execFileSync("tar", ["xf", archive, "-C", dir])
    const source = join(dir, "entireio-cli")
    const mb = Number(execFileSync("du", ["-sb", source], { encoding: "utf8" }).split("\t")[0]) / 1e6
    const floors: number[] = []
    const syncs: number[] = []
    let rss = 0
    let floorText = 0
    const home = join(dir, "home")
    for (let i = 0; i < RUNS; i++) {
      const floor = time([join(ROOT, "bench/floor-sync.ts"), source, join(dir, `floor-${i}.db`)])
      floorText = Number(floor.stdout)
      floors.push(floor.ms)
      rmSync(join(dir, `floor-${i}.db`))
      rmSync(home, { recursive: true, force: true })
      mkdirSync(home)
      const run = timeWithMemory([DEX, "sync"], { HOME: home, CLAUDE_CONFIG_DIR: source })
      if (run.code !== 0) throw new Error(run.stderr)
      syncs.push(run.ms)
      rss = Math.max(rss, run.rssMb)
    }
    const stats = JSON.parse(time([DEX, "stats", "--json"], { HOME: home }).stdout) as {
      text_bytes: number
      total_messages: number
    }
    const disk = sizeOf(join(home, ".dex/history.db"), join(home, `.dex/${INDEX_FILE}`))
    const again = median(
      Array.from({ length: 5 }, () => time([DEX, "sync"], { HOME: home, CLAUDE_CONFIG_DIR: source }).ms),
    )
    const ratio = median(syncs) / median(floors)
    console.log(
      `genuine corpus: ${stats.total_messages} messages, ${(stats.text_bytes / 1e6).toFixed(1)} MB of text (the floor indexed ${(floorText / 1e6).toFixed(1)} MB), runs ${syncs.map((ms) => (ms / 1000).toFixed(2)).join(" ")} s, floors ${floors.map((ms) => (ms / 1000).toFixed(2)).join(" ")} s, again ${again.toFixed(0)} ms`,
    )
    return [
      {
        what: "cold sync of the genuine corpus, redaction and raw records included",
        measured: `${(median(syncs) / 1000).toFixed(2)} s, ${(mb / (median(syncs) / 1000)).toFixed(0)} MB/s, ${ratio.toFixed(2)} ×`,
        floor: `${(median(floors) / 1000).toFixed(2)} s`,
        goal: "≤ 2 ×",
        ok: ratio <= 2,
      },
      { what: "memory of that sync", measured: `${rss.toFixed(0)} MB`, floor: "", goal: "< 300 MB", ok: rss < 300 },
      {
        what: "disk, genuine corpus",
        measured: `${(disk / stats.text_bytes).toFixed(2)} × the text (${(disk / 1e6).toFixed(0)} MB)`,
        floor: "",
        goal: "≤ 1.5 ×",
        ok: disk / stats.text_bytes <= 1.5,
      },
      ...benchLongest(home),
    ]
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** A sync that finds nothing new, in as many files as a heavy user has. */
export function benchNothingNew(): Row[] {
  const home = mkdtempSync(join(tmpdir(), "dex-bench-files-"))
  try {
    generateCorpus(join(home, ".claude"), { messages: 20_000, messagesPerConversation: 2, seed: 9 })
    time([DEX, "sync"], { HOME: home })
    const runs = Array.from({ length: 11 }, () => time([DEX, "sync"], { HOME: home }))
    if (!/Nothing new in 10,000/.test(runs[0]!.stdout)) throw new Error(runs[0]!.stdout)
    const ms = median(runs.map((run) => run.ms))
    const bare = median(Array.from({ length: 11 }, () => time(["-e", "0"]).ms))
    return [
      {
        what: "sync with nothing new, 10,000 files",
        measured: `${ms.toFixed(0)} ms`,
        floor: `node -e 0: ${bare.toFixed(0)} ms`,
        goal: "< 300 ms",
        ok: ms < 300,
      },
    ]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
