import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")

test("docs/words.md lists every word once, sorted, with a path in src/ that exists", () => {
  const rows = readFileSync(join(ROOT, "docs/words.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| **"))
  const words = rows.map((row) => /^\| \*\*([a-z ]+)\*\* \| \S.* \| `([\w./-]+)` \|$/.exec(row)?.slice(1) ?? [row, ""])
  expect(words.length).toBeGreaterThan(50)
  const names = words.map(([word]) => word!)
  expect(names).toEqual([...new Set(names)].sort())
  expect(words.filter(([, place]) => place === "" || !existsSync(join(ROOT, "src", place!)))).toEqual([])
})
