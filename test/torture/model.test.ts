import { test } from "vitest"
import { readHistories } from "../ingest/model.ts"

/** 100 in CI, always the same; `npm run torture` runs more, always others. A failure prints its seed, which replays it. */
const HISTORIES = Number(process.env.DEX_HISTORIES ?? 100)
const SEED = Number(process.env.DEX_SEED ?? 2026)

test(
  `reading bit by bit gives what reading at once gives, and nothing that was ever read is lost (${HISTORIES} histories)`,
  () => readHistories(HISTORIES, SEED),
  Math.max(600_000, HISTORIES * 1000),
)
