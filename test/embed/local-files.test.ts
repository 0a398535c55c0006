import { hash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { expect, test } from "vitest"
import { LOCAL_FILES, LOCAL_VERSION } from "../../src/embed/local-files.ts"

// dex runs only the package whose checksums it was built with. They are written when the package is built; this checks, without a
// network, that nobody changed the package and forgot to update them.

const PACKAGE = join(import.meta.dirname, "../../packages/embed-local")
const sum = (bytes: Uint8Array) => hash("sha512", bytes, "base64")

test("the checksums are those of the package's manifest and of its code as it is today", async () => {
  const manifest = readFileSync(join(PACKAGE, "package.json"))
  expect(LOCAL_FILES["package.json"]).toBe(sum(manifest))
  expect(LOCAL_VERSION).toBe((JSON.parse(manifest.toString()) as { version: string }).version)
  const { outputFiles } = await build({
    absWorkingDir: PACKAGE,
    ...{ bundle: true, format: "esm", platform: "node", target: "node22", legalComments: "inline", write: false },
    entryPoints: [join(PACKAGE, "src/index.ts")],
    outfile: join(PACKAGE, "dist/index.js"),
  })
  expect(LOCAL_FILES["dist/index.js"]).toBe(sum(outputFiles[0]!.contents))
})

test("they cover the model, its runtime and its vocabulary", () => {
  expect(Object.keys(LOCAL_FILES).sort()).toEqual([
    "dist/index.js",
    "dist/model.onnx",
    "dist/ort-wasm-simd-threaded.mjs",
    "dist/ort-wasm-simd-threaded.wasm",
    "dist/ort.mjs",
    "dist/vocab.txt",
    "package.json",
  ])
})

test.skipIf(!existsSync(join(PACKAGE, "dist/model.onnx")))("a package that was built here has them", () => {
  const built = ["package.json", ...readdirSync(join(PACKAGE, "dist")).map((name) => `dist/${name}`)]
  const sums = built.map((name) => [name, sum(readFileSync(join(PACKAGE, name)))])
  expect(Object.fromEntries(sums)).toEqual(LOCAL_FILES)
})
