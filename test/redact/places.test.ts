import { expect, test } from "vitest"
import { redactText } from "../../src/redact/redact.ts"
import { CONTEXTS, readable } from "./contexts.ts"
import { random } from "./secrets.ts"
import { UNSEEN_PLACES } from "./unseen-places.ts"

test("of forty kinds that were chosen before the rules for places, 31 % are redacted", () => {
  const r = random(143)
  const shown = UNSEEN_PLACES.flatMap(({ kind, make }) =>
    Array.from({ length: 8 }, () => {
      const { text, secrets } = make(r)
      return { kind, missed: readable(secrets, redactText(text), CONTEXTS[0]!) !== undefined }
    }),
  )
  const missed = shown.filter((one) => one.missed)
  const report = `${missed.length} of ${shown.length}: ${JSON.stringify([...new Set(missed.map((one) => one.kind))])}`
  expect(new Set(shown.map((one) => one.kind)).size).toBe(40)
  expect(1 - missed.length / shown.length, report).toBeGreaterThanOrEqual(0.31)
})
