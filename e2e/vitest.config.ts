import { defineConfig } from "vitest/config"

/** These tests need the machine to themselves, because a hook that is late prints nothing. */
const ALONE = ["hooks.test.ts", "more-hooks.test.ts"]

const common = {
  root: import.meta.dirname,
  // Each run of an agent has its own limit of three minutes, so this one is only a safeguard.
  testTimeout: 400_000,
  hookTimeout: 400_000,
  pool: "forks" as const,
}

export default defineConfig({
  root: import.meta.dirname,
  test: {
    globalSetup: ["../test/support/build.ts"],
    reporters: ["verbose"],
    projects: [
      {
        // An agent is idle half of the time, so three run at once.
        test: {
          ...common,
          name: "agents",
          include: ["*.test.ts", "*.test.mjs"],
          exclude: ALONE,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...common, name: "hooks", include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
