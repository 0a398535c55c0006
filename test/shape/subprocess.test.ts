import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")
const files = ["src", "hub/src"].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `${folder}/${file.replaceAll("\\", "/")}`),
)
const matching = (pattern: RegExp) =>
  files.filter((file) => pattern.test(readFileSync(join(ROOT, file), "utf8"))).sort()

test("only one folder starts dex's own threads and processes, and only one file answers in them", () => {
  expect(files.length).toBeGreaterThan(500)
  expect(matching(/\bnew Worker\(/)).toEqual(["src/subprocess/thread.ts"])
  expect(matching(/\bfork\(/)).toEqual(["src/subprocess/process.ts"])
  expect(matching(/\bparentPort\b|\bprocess\.send\b|process\.on\("(?:message|disconnect)"/)).toEqual([
    "src/subprocess/serve.ts",
  ])
  // The picker starts `dex sync --json` and reads its output, as any program may.
  expect(matching(/\bspawn(?:Sync)?\(\s*process\.execPath/)).toEqual([
    "src/cli/picker/sync-while-picking.ts",
    "src/integrations/launcher.ts",
    "src/subprocess/process.ts",
  ])
})

test("one function finds every program that dex starts, next to its source or in the bundle", () => {
  // The style sheet of a shared page is no program.
  expect(matching(/import\.meta\.url\.endsWith\("\.ts"\)/)).toEqual(["src/render/html/page-style.ts"])
  const named = files.flatMap((file) =>
    [
      ...readFileSync(join(ROOT, file), "utf8").matchAll(/subprocessFile\("\.\/([\w-]+)\.ts", import\.meta\.url\)/g),
    ].map(([, name]) => name!),
  )
  const bundled = ["scripts/bundle.mjs", "scripts/sync-entry.mjs", "hub/scripts/build.mjs"].map((file) =>
    readFileSync(join(ROOT, file), "utf8"),
  )
  expect(named.length).toBeGreaterThan(8)
  expect(named.filter((name) => !bundled.some((text) => text.includes(`/${name}.ts"`)))).toEqual([])
})
