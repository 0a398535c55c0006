import { sep } from "node:path"
import { expect, test } from "vitest"
import { readSource, sourceFiles } from "../support/source-files.ts"

/** Functions that can block on a pipe or read without end. `readSync` and `fstatSync` need a file that one of them opened. */
const OPENS = /^(?:readFile|readFileSync|open|openSync|openAsBlob|createReadStream|copyFile|copyFileSync|cp|cpSync)$/

/** The files that may use these functions, and why. All others use core/read-file.ts. */
const ALLOWED: Record<string, string> = {
  "core/read-file.ts": "the one reader",
  "core/copy-file.ts": "writes a copy of what the reader opened",
  "agents/kit/zstd.ts": "writes",
  "answers/map.run.ts": "a schema that the user names on the command line, who may name a pipe",
  "answers/recipes.ts": "a recipe that the user names or keeps in dex's folder",
  "answers/map/cache.ts": "dex's own folder",
  "app/listing.ts": "dex's own folder",
  "cli/usage-line.ts": "dex's own folder",
  "config/write.ts": "writes",
  "serve/http/guard.ts": "dex's own folder",
  "integrations/files.ts": "writes",
  "integrations/record.ts": "dex's own folder",
  "integrations/watch-service.ts": "dex's own folder",
  "render/html/page-style.ts": "dex's own program",
  "store/history/backup.ts": "writes, and reads back what it wrote",
  "store/history/rot/damage-list.ts": "dex's own folder",
  "store/sqlite/database.ts": "dex's own folder",
  "store/sqlite/lock.ts": "dex's own folder",
  "testing/contract.ts": "fixtures of whoever runs it, unpacked in a folder of its own",
  "tools/resume/bring.ts": "writes new files only",
  "trace/append.ts": "dex's own folder",
  "trace/forget.ts": "dex's own folder",
  "trace/read.ts": "dex's own folder",
  "view/layout.ts": "dex's own program",
  "view/door.ts": "dex's own folder",
  "watch/instance.ts": "dex's own folder",
}

const sources = sourceFiles.map((file) => file.split(sep).join("/"))

function opensIn(file: string): string[] {
  const text = readSource(file.split("/").join(sep))
  const whole =
    /(?:import\s+(?:\*\s+as\s+)?\w+\s+from|import\(|require\(|getBuiltinModule\()\s*["'](?:node:)?fs(?:\/promises)?["']/
  if (whole.test(text)) return ["all of node:fs"]
  return [...text.matchAll(/import\s*\{([^}]*)\}\s*from\s*["'](?:node:)?fs(?:\/promises)?["']/g)]
    .flatMap(([, names]) => names!.split(","))
    .map((name) => name.trim().split(/\s+as\s+/)[0]!)
    .filter((name) => OPENS.test(name))
}

test("only the listed files open files themselves, and all others use the one reader", () => {
  expect(sources.length).toBeGreaterThan(200)
  const opening = sources.filter((file) => opensIn(file).length > 0)
  expect(opening.filter((file) => !(file in ALLOWED))).toEqual([])
  // Every listed file still uses one of them.
  expect(Object.keys(ALLOWED).filter((file) => !opening.includes(file))).toEqual([])
})
