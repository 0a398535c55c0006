import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DEX, ROOT, time, timeWithMemory } from "./measure.ts"
import type { Row } from "./report.ts"

const FILES = 5_000
const LONGEST = 20_000

/** Documents as people write them: the Markdown in the installed packages, repeated until there are enough. */
export function benchDocuments(): Row[] {
  const home = mkdtempSync(join(tmpdir(), "dex-bench-documents-"))
  try {
    const folder = join(home, "docs")
    const bytes = writeDocuments(folder)
    const floor = time([join(ROOT, "bench/floor.ts"), "documents", folder])
    const first = timeWithMemory([DEX, "docs", "add", folder, "--global"], { HOME: home })
    const again = time([DEX, "docs", "sync"], { HOME: home })
    const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`
    return [
      {
        what: `docs add, ${FILES.toLocaleString("en")} Markdown files, ${(bytes / 1e6).toFixed(1)} MB`,
        measured: `${seconds(first.ms)} (${(first.ms / floor.ms).toFixed(2)} ×), ${first.rssMb.toFixed(0)} MB`,
        floor: `parsing them ${seconds(floor.ms)}`,
        goal: "at most 3 ×, under 300 MB",
        ok: first.code === 0 && first.ms <= 3 * floor.ms && first.rssMb < 300,
      },
      {
        what: "docs sync, nothing changed",
        measured: seconds(again.ms),
        floor: "",
        goal: "under 1 s",
        ok: again.code === 0 && again.ms < 1000,
      },
    ]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

function writeDocuments(folder: string): number {
  const found = readdirSync(join(ROOT, "node_modules"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const texts = found.map((path) => readFileSync(path, "utf8")).filter((text) => text.length < LONGEST)
  let bytes = 0
  for (let i = 0; i < FILES; i++) {
    const folderOf = join(folder, `part-${i % 50}`)
    if (i < 50) mkdirSync(folderOf, { recursive: true })
    const text = `${texts[i % texts.length]}\n\n<!-- ${i} -->\n`
    bytes += Buffer.byteLength(text)
    writeFileSync(join(folderOf, `document-${i}.md`), text)
  }
  return bytes
}
