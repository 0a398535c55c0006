import { join } from "node:path"
import { expect, test } from "vitest"
import { INDEX_FILE, KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { carve } from "../support/carve.ts"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"
import { dex, startDex } from "../support/dex.ts"
import { holdOpen } from "../support/hold-open.ts"
import { randomWords } from "../support/random-words.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"

const OTHER = "22222222-2222-4333-8444-555555555555"
const TURNS = 120

/** A word that is nowhere else. The index leaves out of a word what it shares with the one before, so its end is looked for. */
const canary = (of: string, n: number) => `${"bdfgklmnpr"[n % 10]}${"aeiou"[n % 5]}${of}canary${n}`
const ends = (of: string) => Array.from({ length: TURNS }, (_, n) => canary(of, n).slice(2))

/** A long session that met an error and fixed it, with a word of its own in every message. */
function longSession(home: string, session: string, of: string): void {
  const words = randomWords(of.length)
  const told = writer({ sessionId: session }, of)
  told.prompt(`${canary(of, 0)} fails, make the tests pass`)
  const error = `TypeError: ${canary(of, 1)} is not a function`
  told.answer(`m1_${of}`, [call(`c1_${of}`, "Bash", { command: "npm test" })])
  told.result(`c1_${of}`, error, { toolUseResult: `Error: ${error}` }, { is_error: true })
  const filePath = `/home/dev/proj/src/${canary(of, 2)}.ts`
  told.answer(`m2_${of}`, [call(`c2_${of}`, "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-a", `+${canary(of, 3)}()`] }]
  told.result(`c2_${of}`, "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
  told.answer(`m3_${of}`, [call(`c3_${of}`, "Bash", { command: "npm test" })])
  told.result(`c3_${of}`, "12 passed", { toolUseResult: { stdout: "12 passed", stderr: "", interrupted: false } })
  for (let n = 4; n < TURNS; n++) {
    if (n % 2) told.prompt(`${words(300)} ${canary(of, n)} ${words(300)}`)
    else told.answer(`t${n}_${of}`, [{ type: "text", text: `${words(300)} ${canary(of, n)} ${words(300)}` }])
  }
  told.plain({ type: "custom-title", customTitle: `About ${canary(of, 0)}`, sessionId: session })
  putSession(home, told.records, session)
}

test("nothing of a forgotten conversation can be carved out of any file, nor out of a log that others keep open", async () => {
  const home = tempDir()
  const folder = join(home, ".dex")
  longSession(home, SESSION, "lost")
  longSession(home, OTHER, "kept")
  for (const args of [
    ["sync"],
    ["fix", `TypeError: ${canary("lost", 1)} is not a function`],
    ["search", canary("lost", 5)],
  ])
    expect(await dex(home, args)).toMatchObject({ code: 0 })
  const suggestions = openSuggestions(join(folder, "suggest.db"))
  for (let n = 0; n < TURNS; n++)
    suggestions.save(
      suggestionOf(`ab${n}`, {
        items: [
          itemOf({
            key: `${n}`,
            summary: `${canary("lost", n)} ${"x".repeat(3_000)}`,
            ref: `claude_code:${SESSION}#2`,
          }),
        ],
      }),
    )
  suggestions.close()
  // Everything can be found before, or finding nothing after would prove nothing.
  const databases = ["history.db", INDEX_FILE, KNOWLEDGE_FILE, "suggest.db"]
  const before = carve(folder, ends("lost"))
  for (const name of databases) expect(before).toContain(`${name}: bytes`)
  expect(before).toContain("history.db: frame")
  // As a server does that is idle: so no log is removed by whoever closes last.
  await holdOpen(databases.map((name) => join(folder, name)))
  expect(await dex(home, ["forget", SESSION, "--yes"])).toMatchObject({ code: 0 })
  expect(carve(folder, ends("lost"))).toEqual([])
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  expect(carve(folder, ends("lost"))).toEqual([])
  expect(carve(folder, ends("kept"))).toEqual(expect.arrayContaining(["history.db: frame", `${INDEX_FILE}: bytes`]))
})

test.each([
  ["sync", []],
  ["gc", ["--json"]],
])(
  "where somebody still reads the old pages, it says so, waits a bounded time and tells the truth; the next %s finishes it",
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
    const said = { stdout: "", stderr: "" }
    let waitedAfter = Number.POSITIVE_INFINITY
    child.stdout!.on("data", (chunk) => {
      said.stdout += chunk
    })
    child.stderr!.on("data", (chunk) => {
      said.stderr += chunk
      if (said.stderr.startsWith("Waiting for another program"))
        waitedAfter = Math.min(waitedAfter, performance.now() - started)
    })
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(0)
    const took = performance.now() - started
    expect(took).toBeLessThan(25_000)
    expect(took - waitedAfter).toBeGreaterThan(8_000) // it is said when the waiting begins, not when it ends
    if (form.length > 0) expect(JSON.parse(said.stdout)).toMatchObject({ count: 1, pinned: names })
    else
      expect(said.stderr.replaceAll("\n", " ")).toMatch(
        /Another program still reads the old pages of history\.db, index-\d\.db and knowledge-\d\.db: .* next `dex sync` or `dex gc`/,
      )
    expect(said.stderr).not.toContain("Gone from")
    expect((await dex(home, ["search", canary("lost", 5)], { DEX_TRACES: "off" })).code).toBe(1)
    // It is true.
    expect(carve(folder, ends("lost"))).toEqual(expect.arrayContaining(["history.db: frame"]))
    await reader.stopReading()
    expect(await dex(home, [next])).toMatchObject({ code: 0 })
    expect(carve(folder, ends("lost"))).toEqual([])
  },
)

test("a sync does not wait for somebody who reads", async () => {
  const home = tempDir()
  longSession(home, SESSION, "lost")
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  await holdOpen([join(home, ".dex", "history.db"), join(home, ".dex", INDEX_FILE)], { reading: true })
  longSession(home, OTHER, "kept")
  const started = performance.now()
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  expect(performance.now() - started).toBeLessThan(20_000)
  expect((await dex(home, ["search", canary("kept", 5)])).code).toBe(0)
})
