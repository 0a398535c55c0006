import { globSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { redactText } from "../../src/redact/redact.ts"

const ROOT = join(import.meta.dirname, "../..")

/** Test files are left out, because they contain values that are meant to look like secrets. */
const isTest = (file: string) => /\/(?:tests?|__tests__|fixtures|\.[^/]+)\/|\.test\./.test(file)

/** The same files in another order, in which neighbours are from different folders, so that the first ones are a fair sample. */
const fromAllOver = (files: string[]) => files.map((_, at) => files[(at * 7919) % files.length]!)

test("redacts at most 0.1 false secrets per MB of source code, documentation and lockfiles", () => {
  const roots = [
    join(ROOT, "{package-lock.json,node_modules/**/*.{js,ts,json,md,map}}"),
    ...["/usr/lib/python3.*/**/*.py", "/usr/include/**/*.h", "/usr/share/doc/**/*.{txt,html,md}"],
  ]
  const found: string[] = []
  let bytes = 0
  for (const pattern of roots) {
    const until = bytes + 5e6
    for (const file of fromAllOver(globSync(pattern))) {
      if (bytes > until) break
      const stat = statSync(file, { throwIfNoEntry: false })
      if (!stat?.isFile() || stat.size > 2e6 || isTest(file)) continue
      const text = readFileSync(file, "utf8")
      bytes += stat.size
      for (const marker of redactText(text).match(/\[REDACTED:[a-z0-9-]+\]/g) ?? []) found.push(`${file} ${marker}`)
    }
  }
  expect(bytes).toBeGreaterThan(15e6)
  expect(found.length / (bytes / 1e6), found.join("\n")).toBeLessThanOrEqual(0.1)
})
