import { test } from "vitest"
import { readHistories } from "./model.ts"

// Findings of earlier campaigns come first. `npm run test:slow` reads 100 histories, `npm run torture -- model` 50,000.

test("reading in steps gives the same as reading at once, and nothing that was read is lost (25 histories)", () =>
  readHistories(25, 2026))
