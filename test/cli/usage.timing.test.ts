import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { DEX } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"

const ROUNDS = 21

test("the status line takes at most 1.5 times as long as Node itself", () => {
  const home = tempDir()
  mkdirSync(join(home, ".dex"))
  const today = { day: "2026-11-03", cost: 1.5, tokens: 1234, unpriced_tokens: 0 }
  writeFileSync(join(home, ".dex", "usage-line.json"), JSON.stringify({ at: 1, today }))
  const taken = (args: string[]) => {
    const start = performance.now()
    const { status } = spawnSync(process.execPath, args, { env: { HOME: home, PATH: process.env.PATH ?? "" } })
    expect(status).toBe(0)
    return performance.now() - start
  }
  const rounds = Array.from({ length: ROUNDS }, () => [taken(["-e", "0"]), taken([DEX, "usage", "--line"])] as const)
  const median = (of: 0 | 1) => rounds.map((round) => round[of]).sort((a, b) => a - b)[ROUNDS >> 1]!
  const ratio = median(1) / median(0)
  console.log(
    `node -e 0: ${median(0).toFixed(1)} ms, dex usage --line: ${median(1).toFixed(1)} ms, ratio ${ratio.toFixed(2)}`,
  )
  expect(ratio).toBeLessThanOrEqual(1.5)
})
