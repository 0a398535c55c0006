import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { isDexError } from "../../src/core/error.ts"
import { SUMMED_TABLES } from "../../src/store/history/rot/sums.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { removeDatabase } from "../../src/store/sqlite/database.ts"
import { everything, fullHistory } from "../store/full-history.ts"
import { byteIn, bytesOf, countBytes } from "../support/sqlite-bytes.ts"
import { tempDir } from "../support/temp.ts"

/** All 800 bits of the header take a minute, so only every third is flipped by default. */
const EVERY = process.env.DEX_FLIPS ? 1 : 3

test("a flipped bit in the file's header changes nothing, or the file is refused as damaged", async () => {
  const { path, clean } = await closed()
  const bits = Array.from({ length: 800 / EVERY }, (_, i) => i * EVERY)
  const { refused, unharmed, wrong } = await flippedAndUsed(path, bits, clean)
  expect(wrong).toEqual([])
  expect([refused > bits.length / 3, unharmed > bits.length / 4]).toEqual([true, true])
})

test("a flipped bit in the schema changes nothing, or the file is refused as damaged", async () => {
  const { path, clean } = await closed()
  const places = bytesOf(path, SUMMED_TABLES).structure.get("schema")!
  const count = countBytes(places) * 8
  const step = Math.floor(count / (process.env.DEX_FLIPS ? 1000 : 150))
  const bits = Array.from({ length: Math.floor(count / step) }, (_, i) => byteIn(places, (i * step) >> 3) * 8 + (i % 8))
  const { refused, wrong } = await flippedAndUsed(path, bits, clean)
  expect(wrong).toEqual([])
  expect(refused).toBeGreaterThan(bits.length / 2)
})

/** A closed history file with an empty log, and everything that can be read from it. */
async function closed(): Promise<{ path: string; clean: string }> {
  const { path, store } = await fullHistory()
  const clean = await saidBy(store)
  await store.checkpoint()
  store.close()
  return { path, clean }
}

/** Flips each bit separately, and counts whether the file is unharmed or refused. */
async function flippedAndUsed(path: string, bits: number[], clean: string) {
  const whole = readFileSync(path)
  const flipped = join(tempDir(), "history.db")
  const outcomes = { unharmed: 0, refused: 0, wrong: [] as string[] }
  for (const bit of bits) {
    const bytes = Buffer.from(whole)
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    removeDatabase(flipped)
    writeFileSync(flipped, bytes)
    const outcome = await usedAfter(flipped, clean)
    if (outcome === "unharmed") outcomes.unharmed++
    else if (outcome === "refused") outcomes.refused++
    else outcomes.wrong.push(`byte ${bit >> 3}, bit ${bit & 7}: ${outcome}`)
  }
  if (process.env.DEX_FLIPS) console.log(`${bits.length} flips: ${JSON.stringify(outcomes)}`)
  return outcomes
}

/** Everything that can be read from a history, except its id, because a recovered file gets a new one. */
async function saidBy(store: HistoryWriter): Promise<string> {
  return JSON.stringify({ ...(await everything(store)), id: "" })
}

/** Reads all of a file, writes to it, and reads it again. */
async function usedAfter(path: string, clean: string): Promise<string> {
  try {
    for (const text of ["z".repeat(300_000), "short"]) {
      const store = openStore(path)
      try {
        const told = await saidBy(store)
        if ((await store.check()).length > 0) return "refused"
        if (told !== clean) return "says something else"
        await store.saveContainer("gemini_cli", "/home/dev/elsewhere", text)
        await store.checkpoint()
      } finally {
        store.close()
      }
    }
    return "unharmed"
  } catch (error) {
    return isDexError(error) && ["corrupt", "damaged"].includes(error.code)
      ? "refused"
      : `fails otherwise: ${(error as Error).stack}`
  }
}
