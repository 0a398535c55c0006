import { test } from "vitest"
import { readHistories } from "./model.ts"

// What earlier campaigns found comes first. `npm run test:slow` reads 100 histories, `npm run torture -- model` 50,000.

test("reading bit by bit gives what reading at once gives, and nothing that was ever read is lost (25 histories)", () =>
  readHistories(25, 2026))
