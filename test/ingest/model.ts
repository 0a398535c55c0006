import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { expect } from "vitest"
import { allMarkers, liveContent, type Step, World } from "./world.ts"

/**
 * Makes random histories, and fails unless reading each in steps gives the same as reading it at once, and nothing is
 * lost or counted twice.
 */
export async function readHistories(histories: number, seed: number): Promise<void> {
  const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()
  const dir = mkdtempSync(join(base, "dex-model-"))
  let run = 0
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 14 }), async (steps) => {
        const home = join(dir, String(run++))
        mkdirSync(home)
        const world = new World(home)
        try {
          const everRead = new Set<string>()
          for (const one of steps) {
            await world.take(one)
            if (one.do === "sync" || one.do === "stop")
              for (const marker of await allMarkers(world.store)) everRead.add(marker)
            if (one.do === "sync") expect(await world.spent()).toEqual(await world.spentAnew())
          }
          await world.sync() // this sync can read what the last one could not
          await world.sync()
          const token = (await world.store.changes(undefined, 1000)).token
          const again = await world.sync()
          expect(again.changed).toBe(0)
          expect((await world.store.changes(undefined, 1000)).token).toBe(token)
          expect(await world.spent()).toEqual(await world.spentAnew())

          const fresh = await world.rebuilt(join(home, "fresh"))
          try {
            const atOnce = await liveContent(fresh.store)
            const bitByBit = await liveContent(world.store)
            for (const id of world.forgotten) {
              expect(bitByBit[id]).toBeUndefined()
              delete atOnce[id]
            }
            for (const id of world.deleted) {
              if (!atOnce[id]) delete bitByBit[id]
              if (!atOnce[id] || !bitByBit[id]) continue
              expect(bitByBit[id].messages.filter((message) => isAmong(message, atOnce[id]!.messages))).toEqual(
                atOnce[id].messages,
              )
              delete atOnce[id]
              delete bitByBit[id]
            }
            expect(bitByBit).toEqual(atOnce)
          } finally {
            fresh.store.close()
            fresh.index.close()
          }
          const kept = await allMarkers(world.store)
          const lost = [...everRead].filter((marker) => !kept.has(marker) && !world.isForgotten(marker))
          expect(lost).toEqual([])
          expect([...kept].filter((marker) => world.isForgotten(marker))).toEqual([])
          for (const marker of kept)
            expect([marker, (await world.index.count({ match: [{ words: marker }] })).total]).toEqual([marker, 1])
        } finally {
          world.close()
          rmSync(home, { recursive: true, force: true })
        }
      }),
      { numRuns: histories, examples: FOUND, seed },
    )
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const file = fc.nat(4)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("append" as const), file, count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("sync" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("tear" as const), file, at: fc.nat(400) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("finish" as const), file }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("splice" as const), file, at: fc.nat(400) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("join" as const), file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("nul" as const), file, length: fc.nat(40) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("again" as const), file, count: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("truncate" as const), file, at: fc.nat(5000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("rotate" as const), file, count: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("drop" as const), file, line: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), file }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("age" as const), file, hours: fc.integer({ min: 1, max: 100 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("copy" as const), file, lines: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cd" as const), file, folder: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("forget" as const), session: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("log" as const), session: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("trim" as const), lines: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("block" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("die" as const), file }) },
)

/** Findings of earlier campaigns, shrunk; each is tried first. */
const FOUND: [Step[]][] = [
  // The title came from a prompt that the source no longer has, although it still has others.
  [
    [
      { do: "nul", file: 4, length: 0 },
      { do: "log", session: 0 },
      { do: "sync" },
      { do: "splice", file: 0, at: 0 },
      { do: "log", session: 0 },
      { do: "rotate", file: 4, count: 1 },
    ],
  ],
  // A cut and a late end made a record with another one's uuid, and the other one was lost.
  [
    [
      { do: "tear", file: 1, at: 79 },
      { do: "splice", file: 1, at: 17 },
      { do: "sync" },
      { do: "truncate", file: 1, at: 4104 },
      { do: "finish", file: 1 },
    ],
  ],
  // The same, and the damaged record is a separate message with other text.
  [
    [
      { do: "tear", file: 1, at: 85 },
      { do: "append", file: 0, count: 4 },
      { do: "append", file: 0, count: 4 },
      { do: "splice", file: 1, at: 20 },
      { do: "sync" },
      { do: "truncate", file: 1, at: 3747 },
      { do: "finish", file: 1 },
    ],
  ],
  // The file that inherits a conversation was inaccessible at that moment, and was never read again.
  [
    [
      { do: "splice", file: 0, at: 0 },
      { do: "copy", file: 3, lines: 0 },
      { do: "sync" },
      { do: "delete", file: 0 },
      { do: "block" },
      { do: "sync" },
      { do: "sync" },
    ],
  ],
  // A message that one file lost, but its copy still has, took the position of the lost one.
  [
    [
      { do: "join", file: 1 },
      { do: "copy", file: 4, lines: 0 },
      { do: "sync" },
      { do: "rotate", file: 4, count: 1 },
      { do: "sync" },
      { do: "join", file: 0 },
    ],
  ],
  // A message that the leading file lost, but another still has, moved to the end.
  [
    [
      { do: "append", file: 4, count: 3 },
      { do: "join", file: 4 },
      { do: "copy", file: 1, lines: 0 },
      { do: "sync" },
      { do: "drop", file: 1, line: 5 },
      { do: "sync" },
    ],
  ],
  // Two files had the same messages in different orders, and the one that was read first won.
  [
    [
      { do: "nul", file: 1, length: 0 },
      { do: "append", file: 1, count: 1 },
      { do: "again", file: 1, count: 1 },
      { do: "sync" },
      { do: "copy", file: 4, lines: 0 },
      { do: "drop", file: 4, line: 0 },
    ],
  ],
]

function isAmong(message: object, messages: object[]): boolean {
  return messages.some((other) => JSON.stringify(other) === JSON.stringify(message))
}
