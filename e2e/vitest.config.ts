import { defineConfig } from "vitest/config"

export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ["*.test.ts", "*.test.mjs"],
    // A run of an agent is stopped by itself after three minutes; this only stands behind that.
    testTimeout: 400_000,
    hookTimeout: 400_000,
    globalSetup: ["../test/support/build.ts"],
    fileParallelism: false,
    pool: "forks",
    reporters: ["verbose"],
  },
})
