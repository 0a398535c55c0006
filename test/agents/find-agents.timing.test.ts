import { expect, test } from "vitest"
import { hasAnyRoot } from "../../src/agents/kit/places.ts"
import { agents } from "../../src/agents/registry.ts"
import { tempDir } from "../support/temp.ts"

const TRIES = 50

test.each(agents.filter(({ roots }) => roots))(
  "checking for $name takes at most 1 ms if it is not installed",
  ({ roots }) => {
    const machine = { home: tempDir(), env: {}, platform: process.platform }
    const times = Array.from({ length: TRIES }, () => {
      const start = performance.now()
      expect(hasAnyRoot(roots!, machine)).toBe(false)
      return performance.now() - start
    })
    // The median: other work on the machine may delay any single try.
    expect(times.sort((a, b) => a - b)[TRIES / 2]).toBeLessThan(1)
  },
)
