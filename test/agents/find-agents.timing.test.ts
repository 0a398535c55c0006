import { expect, test } from "vitest"
import { isThere } from "../../src/agents/kit/places.ts"
import { agents } from "../../src/agents/registry.ts"
import { tempDir } from "../support/temp.ts"

const TRIES = 50

test.each(agents.filter(({ roots }) => roots))(
  "looking for $name where it is not installed takes at most 1 ms",
  ({ roots }) => {
    const machine = { home: tempDir(), env: {}, platform: process.platform }
    const times = Array.from({ length: TRIES }, () => {
      const start = performance.now()
      expect(isThere(roots!, machine)).toBe(false)
      return performance.now() - start
    })
    // The median: a machine with other work may stop any single try.
    expect(times.sort((a, b) => a - b)[TRIES / 2]).toBeLessThan(1)
  },
)
