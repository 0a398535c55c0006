import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { programTests } from "./test/support/kinds.ts"
import { LongestFirst } from "./test/support/longest-first.ts"

/** What measures time on a clock: one file at a time, on a machine that does nothing else. */
const TIMING = ["{test,hub/test}/**/*.timing.test.ts", "test/torture/{hooks,load}.test.ts"]
/** The campaigns, and what measures processor time or memory, which other programs hardly change: two files at a time. */
const TORTURE = ["test/torture/*.test.ts", "test/**/*.cost.test.ts"]
/** What starts processes. */
const PROGRAM = programTests()

/** What needs OpenSearch, if DEX_TEST_CLUSTER does not allow as many nodes. */
const NODES = Number(process.env.DEX_TEST_CLUSTER ?? 0)
const CLUSTER = [
  ...(NODES < 1 ? ["hub/test/opensearch.test.ts"] : []),
  ...(NODES < 3 ? ["hub/test/forget-words.test.ts", "hub/test/cluster-faults.test.ts"] : []),
]

const BUILD = "test/support/build.ts"
/** Compares the rows that queries return with the types they are given. */
const CHECK_ROWS = "test/support/check-rows.ts"
const IN_MEMORY = "test/support/in-memory.ts"
const NO_PROCESS = "test/support/no-process.ts"

/** Far more than anything takes: a limit ends a test that hangs, and never one that is slow on a busy machine. */
const HANGS_MS = 300_000

const common = {
  pool: "forks" as const,
  setupFiles: [CHECK_ROWS],
  testTimeout: HANGS_MS,
  hookTimeout: HANGS_MS,
  expect: { poll: { timeout: HANGS_MS / 3 } },
}
/** A worker runs one file after another, because no file leaves anything behind for the next. */
const shared = { ...common, isolate: false }
/** Those that mostly wait for processes and screens. */
const waiting = {
  ...shared,
  globalSetup: [BUILD, IN_MEMORY],
  maxWorkers: Math.max(3, availableParallelism()),
  sequence: { groupOrder: 1 },
}

export default defineConfig({
  test: {
    reporters: ["default"],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...TIMING, ...TORTURE, ...PROGRAM],
          globalSetup: [IN_MEMORY],
          setupFiles: [CHECK_ROWS, NO_PROCESS],
          maxWorkers: availableParallelism(),
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...waiting, name: "program", include: PROGRAM, exclude: [...TIMING, ...TORTURE] } },
      // Each file starts a PostgreSQL and hubs of its own.
      { test: { ...waiting, name: "hub", include: ["hub/test/**/*.test.ts"], exclude: [...TIMING, ...CLUSTER] } },
      {
        test: {
          ...common,
          name: "torture",
          include: TORTURE,
          exclude: TIMING,
          globalSetup: [BUILD],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...common,
          name: "timing",
          include: TIMING,
          globalSetup: [BUILD],
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
