import { createHash } from "node:crypto"
import { expect, test } from "vitest"
import { cutLongTexts, digestOfDataUri } from "../../src/agents/kit/messages.ts"

test("a text over a million characters is cut, with a note of the missing length and its hash", () => {
  const text = "x".repeat(1_000_003)
  const sha256 = createHash("sha256").update(text).digest("hex")
  const kept = cutLongTexts({ short: "y", deep: [{ text }], none: null, count: 3 })
  expect(kept.deep[0]!.text).toBe(`${"x".repeat(1_000_000)}\n[dex: 3 characters not kept, sha256 ${sha256}]`)
  expect({ ...kept, deep: [] }).toEqual({ short: "y", deep: [], none: null, count: 3 })
})

test("a data: URI becomes a digest of its bytes; any other URI does not", () => {
  const sha256 = createHash("sha256").update("hello").digest("hex")
  expect(digestOfDataUri("data:image/png;base64,aGVsbG8=")).toEqual({ sha256, bytes: 5, media_type: "image/png" })
  expect(digestOfDataUri("data:,hello")).toEqual({ sha256, bytes: 5 })
  expect(digestOfDataUri("data:image/png;base64")).toBeUndefined()
  expect(digestOfDataUri("https://example.com/a.png")).toBeUndefined()
})
