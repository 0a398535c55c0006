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

test("nothing is cast to never, which fits every type and so hides every mistake", () => {
  expect(files.length).toBeGreaterThan(500)
  expect(files.filter((file) => /\bas never\b/.test(read(file)))).toEqual([])
})
