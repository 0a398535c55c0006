import { join } from "node:path"
import { expect, test } from "vitest"
import { INDEX_FILE, KNOWLEDGE_FILE, SPENDING_FILE } from "../../src/core/formats.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { carve } from "../support/carve.ts"
import { SESSION } from "../support/claude-code.ts"
import { holdOpen } from "../support/hold-open.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { canary, ends, longSession, OTHER, TURNS } from "./long-session.ts"

test("no byte of a forgotten conversation can be recovered from any file, nor from a log that other processes keep open", async () => {
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
  // Everything can be found before, otherwise finding nothing afterwards would prove nothing.
  const databases = ["history.db", INDEX_FILE, KNOWLEDGE_FILE, SPENDING_FILE, "suggest.db"]
  const before = carve(folder, ends("lost"))
  for (const name of databases) expect(before).toContain(`${name}: bytes`)
  expect(before).toContain("history.db: frame")
  // Like an idle server, this keeps the databases open, so that no log is removed when the last process closes.
  await holdOpen(databases.map((name) => join(folder, name)))
  expect(await dex(home, ["forget", SESSION, "--yes"])).toMatchObject({ code: 0 })
  expect(carve(folder, ends("lost"))).toEqual([])
  await syncHome(home)
  expect(carve(folder, ends("lost"))).toEqual([])
  expect(carve(folder, ends("kept"))).toEqual(expect.arrayContaining(["history.db: frame", `${INDEX_FILE}: bytes`]))
})
