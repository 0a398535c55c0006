import { test } from "vitest"
import { readHistories } from "./model.ts"

test("reading bit by bit gives what reading at once gives, and nothing that was ever read is lost (100 histories)", () =>
  readHistories(100, 2026))
