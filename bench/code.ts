import { execFileSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { languageOf, MAX_CODE_BYTES, whyNotCode } from "../src/code/languages.ts"
import { generateCorpus } from "./corpus.ts"
import { DEX, ROOT, sizeOf, time, timeWithMemory } from "./measure.ts"
import { median, percentile, type Row } from "./report.ts"

const LINES = 1_000_000

/**
 * Code that is installed on this machine: packages of npm and Python. `DEX_BENCH_CODE` names other folders, separated by colons.
 */
export function benchCode(): Row[] {
  const home = mkdtempSync(join(tmpdir(), "dex-bench-code-"))
  const database = join(home, "knowledge.db")
  try {
    const project = join(home, "project")
    const { lines, files, typescript } = gather(project)
    // Run each once before measuring, so that both find the files in memory.
    time([join(ROOT, "bench/floor.ts"), "code", project])
    const floor = timeWithMemory([join(ROOT, "bench/floor.ts"), "code", project])
    const first = timeWithMemory([join(ROOT, "bench/sync-code.mjs"), project, database])
    const size = sizeOf(database)
    const again = time([join(ROOT, "bench/sync-code.mjs"), project, database])
    const one = time([join(ROOT, "bench/sync-code.mjs"), project, database, typescript])
    const { times } = JSON.parse(one.stdout) as { times: number[] }
    const { counts } = JSON.parse(first.stdout) as { counts: { definitions: number; uses: number } }
    generateCorpus(join(home, ".claude"), { messages: 24_000, seed: 5 })
    time([DEX, "sync"], { HOME: home })
    const asked = [DEX, "suggest", "--file", typescript]
    const suggests = [1, 2, 3].map(() => timeWithMemory(asked, { HOME: home }, project))
    const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
    const known = `${counts.definitions.toLocaleString("en")} definitions, ${counts.uses.toLocaleString("en")} uses`
    return [
      {
        what: `code: first sync, ${lines.toLocaleString("en")} lines in ${files.toLocaleString("en")} files; ${known}, ${(size / 1e6).toFixed(0)} MB`,
        measured: `${seconds(first.ms)} (${(first.ms / floor.ms).toFixed(2)} ×), ${first.rssMb.toFixed(0)} MB`,
        floor: `the bare parser ${seconds(floor.ms)}, ${floor.rssMb.toFixed(0)} MB`,
        goal: "at most 2 ×, under 300 MB",
        ok: first.code === 0 && first.ms <= 2 * floor.ms && first.rssMb < 300,
      },
      {
        what: "code: the first three dex suggest in it, with 24,000 messages to learn from",
        measured: suggests.map(({ ms, rssMb }) => `${seconds(ms)}, ${rssMb.toFixed(0)} MB`).join("; "),
        floor: "",
        goal: "under 300 MB",
        ok: suggests.every(({ rssMb, code }) => rssMb < 300 && code !== null && code < 2),
      },
      {
        what: "code: sync, nothing changed",
        measured: seconds(again.ms),
        floor: "",
        goal: "",
        ok: again.code === 0,
      },
      {
        what: `code: one changed file (${Math.round(statSync(join(project, typescript)).size / 1000)} kB), parser open`,
        measured: `median ${median(times).toFixed(0)} ms, p95 ${percentile(times, 0.95).toFixed(0)} ms`,
        floor: "",
        goal: "under 100 ms",
        ok: percentile(times, 0.95) < 100,
      },
    ]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Copies complete packages until there is enough code. The file that will be changed is the TypeScript one closest to 20 kB. */
function gather(project: string): { lines: number; files: number; typescript: string } {
  const named = process.env.DEX_BENCH_CODE?.split(":")
  const roots = named ?? [join(ROOT, "node_modules"), join(ROOT, "e2e/node_modules"), "/usr/lib/python3/dist-packages"]
  let lines = 0
  let files = 0
  let typescript = ""
  let distance = Number.POSITIVE_INFINITY
  for (const [i, root] of roots.entries()) {
    if (!existsSync(root)) continue
    const enough = Math.ceil((LINES * (i + 1)) / roots.length)
    for (const path of codeBelow(root)) {
      if (lines >= enough) break
      if (statSync(join(root, path)).size > MAX_CODE_BYTES) continue
      const text = readFileSync(join(root, path), "utf8")
      if (whyNotCode(text)) continue
      const to = `root${i}/${path}`
      mkdirSync(dirname(join(project, to)), { recursive: true })
      copyFileSync(join(root, path), join(project, to))
      lines += text.split("\n").length
      files++
      const away = Math.abs(text.length - 20_000)
      if (path.endsWith(".ts") && !path.endsWith(".d.ts") && away < distance) {
        distance = away
        typescript = to
      }
    }
  }
  // Without git, folders such as dist are considered build output and skipped.
  execFileSync("git", ["init", "-q"], { cwd: project })
  if (typescript === "") throw new Error("No TypeScript among the code to measure: name folders with DEX_BENCH_CODE")
  return { lines, files, typescript }
}

function codeBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && languageOf(entry.name) !== undefined)
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes("node_modules"))
    .sort()
}
