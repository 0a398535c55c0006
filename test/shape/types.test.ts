import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")
const files = ["src", "hub/src", "packages"].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file) && !file.includes("node_modules"))
    .map((file) => `${folder}/${file.replaceAll("\\", "/")}`),
)
const read = (file: string) => readFileSync(join(ROOT, file), "utf8")

test("nothing is cast to never, which fits every type and hides mistakes", () => {
  expect(files.length).toBeGreaterThan(500)
  expect(files.filter((file) => /\bas never\b/.test(read(file)))).toEqual([])
})

test("a tool's input has the type of its schema, and is not declared again by hand", () => {
  const runs = files.filter((file) => /^src\/tools\/[\w-]+\/run[\w-]*\.ts$/.test(file))
  expect(runs.length).toBeGreaterThan(25)
  expect(runs.filter((file) => /^(?:export )?type \w*Input = \{|\binput: \{/m.test(read(file)))).toEqual([])
})

test("optional fields are plain properties, and conditional spreads are rare", () => {
  const spreads = (folder: string) =>
    files
      .filter((file) => file.startsWith(folder))
      .flatMap((file) => read(file).match(/\.\.\.\((?=[^\n]*(?:&&| \? ))/g) ?? []).length
  expect(spreads("src/tools/")).toBeLessThanOrEqual(60)
  expect(spreads("hub/src/")).toBeLessThanOrEqual(15)
})
