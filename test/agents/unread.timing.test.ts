import { performance } from "node:perf_hooks"
import { expect, test } from "vitest"
import { findUnreadStores, UNREAD_STORES } from "../../src/agents/unread.ts"
import { tempDir } from "../support/temp.ts"

test("checking for a program that is not installed takes at most a millisecond", () => {
  const home = tempDir()
  const look = () => findUnreadStores({ home, env: {}, platform: "linux" })
  expect(look()).toEqual([])
  const started = performance.now()
  for (let i = 0; i < 10; i++) look()
  expect((performance.now() - started) / 10 / UNREAD_STORES.length).toBeLessThan(1)
})
