import { expect, test } from "vitest"
import { createRecentCache } from "../src/recent.ts"

test("keeps the most recently used values up to its size, and always the newest one", () => {
  const recent = createRecentCache<string>(10, (value) => value.length)
  recent.set("a", "aaaa")
  recent.set("b", "bbbb")
  expect(recent.get("a")).toBe("aaaa")
  recent.set("c", "cccc")
  expect([recent.get("a"), recent.get("b"), recent.get("c")]).toEqual(["aaaa", undefined, "cccc"])
  recent.set("a", "aa")
  recent.set("d", "dddd")
  expect([recent.get("a"), recent.get("c"), recent.get("d")]).toEqual(["aa", "cccc", "dddd"])
  recent.set("e", "e".repeat(20))
  expect([recent.get("a"), recent.get("c"), recent.get("d"), recent.get("e")?.length]).toEqual([
    undefined,
    undefined,
    undefined,
    20,
  ])
})
