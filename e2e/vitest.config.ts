import { defineConfig } from "vitest/config"

/** A hook that is late says nothing, so these need the machine for themselves. */
const ALONE = "hooks.test.ts"

const common = {
  root: import.meta.dirname,
  // A run of an agent is stopped by itself after three minutes; this only stands behind that.
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
        // An agent waits for its model, for dex and for itself half of the time.
        test: {
          ...common,
          name: "agents",
          include: ["*.test.ts", "*.test.mjs"],
          exclude: [ALONE],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...common, name: "hooks", include: [ALONE], maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
