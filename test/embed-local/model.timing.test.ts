import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createTokenizer } from "../../packages/embed-local/src/wordpiece.ts"
import { askHelper, type Helper, helperState } from "../../src/embed/ask-helper.ts"
import type { EmbedRole } from "../../src/embed/embedder.ts"
import { localFolder, localPackage } from "../../src/embed/local-package.ts"
import { tempDir } from "../support/temp.ts"

// The real model: `npm run build -w packages/embed-local` makes it, from the network, so it is not part of a clean clone's run.
// `npm run torture -- local` builds it first.

const PACKAGE = join(import.meta.dirname, "../../packages/embed-local")
if (process.env.DEX_LOCAL_MODEL === "build")
  execFileSync(process.execPath, [join(PACKAGE, "scripts/build.mjs")], { stdio: "inherit" })
const isBuilt = existsSync(join(PACKAGE, "dist/model.onnx"))

function installed(): string {
  const dexDir = tempDir()
  const modules = join(localFolder(dexDir), "node_modules")
  mkdirSync(modules, { recursive: true, mode: 0o700 })
  for (const name of ["package.json", "dist"])
    cpSync(join(PACKAGE, name), join(modules, "dexctx-embed-local", name), { recursive: true })
  return dexDir
}

async function started(dexDir: string, role: EmbedRole): Promise<Helper> {
  const helper: Helper = { dexDir, local: localPackage(dexDir)!, role }
  await askHelper(helper, ["hello"]).catch(() => {}) // a query starts the process and does not wait for it
  await expect.poll(async () => (await helperState(helper))?.pid).toBeTypeOf("number")
  const { pid } = (await helperState(helper))!
  onTestFinished(() => void process.kill(pid, "SIGKILL"))
  return helper
}

const cosine = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0)

test.skipIf(!isBuilt)("its tokens are the published ones", () => {
  const tokenize = createTokenizer(readFileSync(join(PACKAGE, "dist/vocab.txt"), "utf8"))
  expect(tokenize("Hello, world!", 128)).toEqual([101, 7592, 1010, 2088, 999, 102])
  expect(tokenize("The refresh token is rotated twice", 128)).toEqual([
    101, 1996, 25416, 21898, 19204, 2003, 20931, 3807, 102,
  ])
})

test.skipIf(!isBuilt)(
  "puts texts with the same meaning next to each other, with vectors of length 1, in at most 550 MB",
  async () => {
    const helper = await started(installed(), "document")
    const [out, session, theme] = (await askHelper(helper, [
      "how do I log people out",
      "invalidate the user's session",
      "the sidebar flickers in dark mode",
    ])) as [Float32Array, Float32Array, Float32Array]
    expect(cosine(out, out)).toBeCloseTo(1, 5)
    expect(cosine(out, session)).toBeGreaterThan(cosine(out, theme) + 0.15)
    const text =
      "The refresh token is rotated twice when two tabs ask at once, since the lock is taken too late. ".repeat(4)
    const began = performance.now()
    for (let i = 0; i < 6; i++)
      await askHelper(
        helper,
        Array.from({ length: 16 }, (_, k) => text.slice(0, 200 + 12 * k)),
      )
    const rate = 96_000 / (performance.now() - began)
    const { bytes } = (await helperState(helper))!
    console.log(`${rate.toFixed(1)} messages/s, ${Math.round(bytes / 1e6)} MB`)
    expect(bytes).toBeLessThan(550e6)
  },
)

test.skipIf(!isBuilt)("a search that finds the model loaded gets its vector soon", async () => {
  const helper = await started(installed(), "query")
  const first = performance.now()
  await askHelper(helper, ["the first question"])
  const loaded = performance.now() - first
  const times: number[] = []
  for (let i = 0; i < 20; i++) {
    const begun = performance.now()
    await askHelper(helper, [`why does the build fail on number ${i}`])
    times.push(performance.now() - begun)
  }
  const median = times.sort((a, b) => a - b)[10]!
  console.log(`first ${Math.round(loaded)} ms, then ${Math.round(median)} ms (median of 20)`)
  expect(median).toBeLessThan(500)
})
