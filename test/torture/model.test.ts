import { test } from "vitest"
import { readHistories } from "../ingest/model.ts"

/** The same 100 in CI; more and different ones with `npm run torture`. A failure prints its seed, which replays it. */
const HISTORIES = Number(process.env.DEX_HISTORIES ?? 100)
const SEED = Number(process.env.DEX_SEED ?? 2026)

test(
  `reading in steps gives the same as reading at once, and nothing that was read is lost (${HISTORIES} histories)`,
  () => readHistories(HISTORIES, SEED),
  Math.max(600_000, HISTORIES * 1000),
)
