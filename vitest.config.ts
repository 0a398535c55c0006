import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { LongestFirst } from "./test/support/longest-first.ts"

/** What measures time or memory: one file at a time, on a machine that does nothing else. */
const TIMING = ["{test,hub/test}/**/*.timing.test.ts", "test/torture/{genuine,hooks,load,memory,sync-hooks}.test.ts"]
/** The campaigns, each a few minutes of work: two at a time. */
const TORTURE = "test/torture/*.test.ts"

const IN_MEMORY = "test/support/in-memory.ts"

/** Far more than anything takes: a limit ends a test that hangs, and never one that is slow on a busy machine. */
const HANGS_MS = 300_000

const common = {
  pool: "forks" as const,
  testTimeout: HANGS_MS,
  hookTimeout: HANGS_MS,
  expect: { poll: { timeout: HANGS_MS / 3 } },
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/build.ts"],
    reporters: ["default"],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...common,
          name: "test",
          include: ["test/**/*.test.ts"],
          exclude: [...TIMING, TORTURE],
          globalSetup: [IN_MEMORY],
          // A process takes one file after another: no file leaves anything behind that another would meet.
          isolate: false,
          // Most wait for a process or a screen much of the time.
          maxWorkers: Math.max(3, availableParallelism()),
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Each file starts a PostgreSQL and hubs of its own.
        test: {
          ...common,
          name: "hub",
          include: ["hub/test/**/*.test.ts"],
          exclude: TIMING,
          globalSetup: [IN_MEMORY],
          isolate: false,
          maxWorkers: Math.max(3, availableParallelism()),
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: "torture",
          include: [TORTURE],
          exclude: TIMING,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { ...common, name: "timing", include: TIMING, maxWorkers: 1, sequence: { groupOrder: 2 } } },
    ],
  },
})
