import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")
const files = ["src", "hub/src", "packages"].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !/node_modules|dist\//.test(file))
    .map((file) => join(folder, file)),
)
const texts = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), "utf8")]))

/** The importers of each file. */
const importers = new Map<string, { by: string; isLazy: boolean }[]>()
for (const [file, text] of texts)
  for (const [, how, target] of text.matchAll(
    /(import\s*\(\s*|from\s+|import\s+|new URL\(\s*|subprocessFile\(\s*)"(\.[^"]+)"/g,
  )) {
    const imported = normalize(join(dirname(file), target!))
    importers.set(imported, [...(importers.get(imported) ?? []), { by: file, isLazy: how!.includes("(") }])
  }

const lines = (file: string) => texts.get(file)!.split("\n").length
const SMALL = 60
/** Two files that would have more lines together stay separate. */
const LARGE = 400
/**
 * Boundaries that an import does not show: a grammar is a row of a table, the page's script is built from its folder, declarations for
 * programs are generated from a file of their own, and dex knows the checksums of the package with the local model.
 */
const BOUNDARIES = /^(?:src\/(?:code\/grammars|view\/client)\/|src\/library\/offered\.ts$|packages\/embed-local\/)/

/** True if the file could be merged into its only importer, which is in the same folder, imports it at start and has room. */
function isCrumb(file: string): boolean {
  const users = importers.get(file) ?? []
  const [by, another] = [...new Set(users.map((user) => user.by))]
  if (by === undefined || another !== undefined || BOUNDARIES.test(file)) return false
  const isElsewhere = dirname(by) !== dirname(file) || users.some(({ isLazy }) => isLazy)
  return !isElsewhere && lines(by) + lines(file) <= LARGE
}

test("a small file has two importers or is a boundary: loaded lazily, an entry, or used by another folder", () => {
  expect(files.length).toBeLessThanOrEqual(893)
  expect(files.filter((file) => lines(file) < SMALL && isCrumb(file))).toEqual([])
})
