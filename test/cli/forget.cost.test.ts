import { join } from "node:path"
import { expect, test } from "vitest"
import { INDEX_FILE, KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { carve } from "../support/carve.ts"
import { SESSION } from "../support/claude-code.ts"
import { dex, startDex } from "../support/dex.ts"
import { holdOpen } from "../support/hold-open.ts"
import { tempDir } from "../support/temp.ts"
import { canary, ends, longSession, OTHER } from "./long-session.ts"

test.each([
  ["sync", []],
  ["gc", ["--json"]],
])(
  "if another process still reads the old pages, it waits a limited time and says so; the next %s finishes it",
  async (next, form) => {
    const home = tempDir()
    const folder = join(home, ".dex")
    longSession(home, SESSION, "lost")
    longSession(home, OTHER, "kept")
    for (const args of [["sync"], ["fix", `TypeError: ${canary("lost", 1)} is not a function`]])
      expect(await dex(home, args)).toMatchObject({ code: 0 })
    const names = ["history.db", INDEX_FILE, KNOWLEDGE_FILE]
    const paths = names.map((name) => join(folder, name))
    const reader = await holdOpen(paths, { reading: true })
    const started = performance.now()
    const child = startDex(home, ["forget", SESSION, "--yes", ...form])
    const printed = { stdout: "", stderr: "" }
    let waitedAfter = Number.POSITIVE_INFINITY
    child.stdout!.on("data", (chunk) => {
      printed.stdout += chunk
    })
    child.stderr!.on("data", (chunk) => {
      printed.stderr += chunk
      if (printed.stderr.startsWith("Waiting at most")) waitedAfter = Math.min(waitedAfter, performance.now() - started)
    })
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(0)
    const took = performance.now() - started
    expect(took - waitedAfter).toBeLessThan(25_000)
    expect(took - waitedAfter).toBeGreaterThan(8_000) // it is said when the waiting begins, not when it ends
    if (form.length > 0) expect(JSON.parse(printed.stdout)).toMatchObject({ count: 1, pinned: names })
    else
      expect(printed.stderr.replaceAll("\n", " ")).toMatch(
        /Another program still reads old pages of history\.db, index-\d\.db and knowledge-\d\.db, .* next `dex sync` or `dex doctor gc`/,
      )
    expect(printed.stderr).not.toContain("Deleted from")
    expect((await dex(home, ["search", canary("lost", 5)], { DEX_TRACES: "off" })).code).toBe(1)
    // The bytes really are still there.
    expect(carve(folder, ends("lost"))).toEqual(expect.arrayContaining(["history.db: frame"]))
    await reader.stopReading()
    expect(await dex(home, [next])).toMatchObject({ code: 0 })
    expect(carve(folder, ends("lost"))).toEqual([])
  },
)

test("a sync does not wait for a process that reads", async () => {
  const home = tempDir()
  longSession(home, SESSION, "lost")
  const syncs = async () => {
    const started = performance.now()
    expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
    return performance.now() - started
  }
  const alone = await syncs()
  await holdOpen([join(home, ".dex", "history.db"), join(home, ".dex", INDEX_FILE)], { reading: true })
  longSession(home, OTHER, "kept")
  expect(await syncs()).toBeLessThan(Math.max(20_000, 3 * alone))
  expect((await dex(home, ["search", canary("kept", 5)])).code).toBe(0)
})
