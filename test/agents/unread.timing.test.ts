import { performance } from "node:perf_hooks"
import { expect, test } from "vitest"
import { findUnreadStores, UNREAD_STORES } from "../../src/agents/unread.ts"
import { tempDir } from "../support/temp.ts"

test("checking for a program that is not installed takes at most a millisecond", () => {
  const home = tempDir()
  const look = () => findUnreadStores({ home, env: {}, platform: "linux" })
  expect(look()).toEqual([])
  const times = Array.from({ length: 11 }, () => {
    const started = performance.now()
    look()
    return (performance.now() - started) / UNREAD_STORES.length
  })
  // The median: other work on the machine may delay any single try.
  expect(times.sort((a, b) => a - b)[5]).toBeLessThan(1)
})
