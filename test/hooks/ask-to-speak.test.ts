import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { onTerminal } from "../integrations/terminal.ts"
import { dex } from "../support/dex.ts"
import { smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

const DAY = 86_400_000

/** A home whose agents' hooks have called dex for this many days; it would have spoken twice. */
function listening(days: number): string {
  const home = tempDir()
  smallHome(home)
  const folder = join(home, ".dex")
  mkdirSync(folder)
  const at = Date.now() - days * DAY
  writeFileSync(
    join(folder, "integrations.json"),
    JSON.stringify({ version: 1, files: {}, hooks: { wanted: true, at } }),
  )
  const suggestions = openSuggestions(join(folder, "suggest.db"))
  for (const name of ["one", "two"]) {
    const moment = {
      event: "failed_command",
      project: "/code/api",
      source: "codex",
      session: name,
      at: at + DAY,
    } as const
    const about = { key: name, title: `Solved ${name}\u001b[31m`, summary: "", reason: "It was so.", features: {} }
    const item = { kind: "fix", ...about, relevance: 0.9, estimated_tokens: 9 } as const
    suggestions.save({ id: name, moment, items: [item], status: "pending", latency_ms: 1 }, { would: true })
  }
  suggestions.close()
  return home
}

const modeOf = (home: string) => {
  try {
    return JSON.parse(readFileSync(join(home, ".dex", "config.json"), "utf8"))["proactive.mode"]
  } catch {
    return undefined
  }
}

test("after a week it says how often it would have spoken and with what, asks, and stores the answer", async () => {
  for (const [key, mode] of [
    ["y", "speak"],
    ["n", "log"],
  ] as const) {
    const home = listening(8)
    const terminal = await onTerminal(home, ["--plain"], [[/Let dex make such suggestions/, key]])
    if (terminal === undefined) return console.log("NOT RUN: no program here makes a terminal")
    expect(terminal.screen).toContain("dex would have made a suggestion 2 times")
    expect(terminal.screen).toContain("failed command: fix: Solved two. It was so.")
    expect(modeOf(home)).toBe(mode)
    const again = await onTerminal(home, ["--plain"], [])
    expect(again!.screen).not.toContain("dex would have made a suggestion")
  }
})

test("in the first week, and if nobody can be asked, it asks nothing", async () => {
  expect((await dex(listening(6), [])).stdout).not.toContain("would have made")
  const home = listening(8)
  const { code, stdout } = await dex(home, [])
  expect(code).toBe(0)
  expect(stdout).toContain("dex would have made a suggestion 2 times")
  expect(stdout).toContain("dex config set proactive.mode speak")
  expect(stdout).not.toContain("\u001b")
  expect(modeOf(home)).toBeUndefined()
})
