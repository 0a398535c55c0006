import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

/** These measure time, or take the whole machine by themselves. */
const ALONE = [
  "test/torture/*.test.ts",
  "test/watch/*.test.ts",
  "test/hooks/*.test.ts",
  "test/embed/*.test.ts",
  "test/mcp/{lifecycle,http}.test.ts",
  "test/code/parse.test.ts",
  "test/connectors/{claude-code,jsonl}.test.ts",
  "test/redact/redact.test.ts",
  "test/search/search.test.ts",
  "test/store/suggestions.test.ts",
  "test/suggest/{decisions,fixes,subscriptions,tests}.test.ts",
]

const common = { testTimeout: 60_000, hookTimeout: 60_000, pool: "forks" as const }

export default defineConfig({
  test: {
    globalSetup: ["test/support/build.ts"],
    reporters: ["default"],
    projects: [
      {
        test: {
          ...common,
          name: "together",
          include: ["test/**/*.test.ts"],
          exclude: ALONE,
          maxWorkers: Math.max(2, availableParallelism() - 1),
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...common, name: "alone", include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
