import crypto from "node:crypto"
import { existsSync } from "node:fs"
import { fileURLToPath, pathToFileURL } from "node:url"
import { expect, onTestFinished, test, vi } from "vitest"
import { generator } from "../../eval/metrics.ts"

// Samples of secrets in odd places: dumps, tables, code, escaped text, command lines. They are kept outside of this repository.
const SCRIPT = fileURLToPath(new URL("../../../shared/tools/redteam/second/4-secrets.mjs", import.meta.url))
const isThere = existsSync(SCRIPT)
if (!isThere) console.log("NOT RUN: the hard kinds of secrets, whose samples are not on this machine")

test.skipIf(!isThere)("at least 90 % of the hard kinds of secrets are redacted in all of their samples", async () => {
  onTestFinished(() => {
    vi.restoreAllMocks()
    vi.unstubAllEnvs()
  })
  vi.stubEnv("REDACT", fileURLToPath(new URL("../../src/redact/redact.ts", import.meta.url)))
  const random = generator(5)
  vi.spyOn(crypto, "randomBytes").mockImplementation(((size: number) =>
    Buffer.from(Array.from({ length: size }, () => Math.floor(random() * 256)))) as typeof crypto.randomBytes)
  const printed: string[] = []
  vi.spyOn(console, "log").mockImplementation((...words: unknown[]) => void printed.push(words.join(" ")))
  await import(pathToFileURL(SCRIPT).href)
  const [, kinds, clean] = /kinds (\d+) fully clean (\d+)/.exec(printed[0]!)!.map(Number)
  expect(kinds).toBeGreaterThanOrEqual(143)
  expect(clean! / kinds!, printed.join("\n")).toBeGreaterThanOrEqual(0.9)
})
