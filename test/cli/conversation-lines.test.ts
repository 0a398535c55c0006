import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { conversationLines, previewLines } from "../../src/cli/print/conversation-lines.ts"
import { glyphsOf, type Screen } from "../../src/render/screen.ts"
import { widthOf } from "../../src/render/terminal.ts"
import { resolveConversation } from "../../src/tools/resolve.ts"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"

const LONG = "88888888-8888-4888-8888-888888888888"
const HOME = syncedOnce((at) =>
  claudeSession(at, {
    id: LONG,
    start: "2026-11-01T00:00:00Z",
    title: "Many turns, and a title that is longer than a narrow screen",
    turns: [
      { user: "How does it begin?" },
      { assistant: `With this.\n\n${"- one more point\n".repeat(30)}` },
      ...Array.from({ length: 60 }, (_, i) => ({ assistant: `step ${i}` })),
      { user: "And how does it end?" },
      { assistant: "Like **that**, 日本語." },
    ],
  }),
)

async function opened(id: string) {
  const dex = createDex({ env: { HOME, TZ: "UTC" }, cwd: HOME, version: "0" })
  onTestFinished(() => dex.close())
  return { dex, row: (await resolveConversation(dex, { id })).row }
}
const screen = (columns: number, color = false): Screen => ({ columns, color, glyphs: glyphsOf({}) })

test.each([24, 80, 140])("a preview of %i columns: title, facts, how it began and how it ended", async (columns) => {
  const { dex, row } = await opened(LONG)
  const lines = await previewLines(dex, row, { screen: screen(columns) })
  const text = lines.join("\n")
  expect(lines.filter((line) => widthOf(line) > columns)).toEqual([])
  expect(text.replaceAll("\n", " ")).toContain("Many turns, and a title")
  expect(text).toMatch(/^Claude Code · /m)
  expect(text).toMatch(
    /│ How does it begin\?[\s\S]*With this\.[\s\S]*\n…\n[\s\S]*│ And how does it end\?[\s\S]*Like \*\*that\*\*/,
  )
  expect(text).not.toContain("step 30")
  expect(lines.length).toBeLessThan(40)
})

test("a preview of a short conversation shows each turn once", async () => {
  const { dex, row } = await opened("22222222")
  const lines = await previewLines(dex, row, { screen: screen(80) })
  expect(new Set(lines.filter((line) => line !== "")).size).toBe(lines.filter((line) => line !== "").length)
  expect(lines).not.toContain("…")
})

test("a whole conversation is drawn as often as it is asked for, with what was searched for marked", async () => {
  const { dex, row } = await opened(LONG)
  const lines = await conversationLines(dex, row, { screen: screen(60, true), words: ["beginning"] })
  const drawn = [...lines()]
  expect([...lines()]).toEqual(drawn)
  expect(drawn.join("\n")).toContain("\x1b[7mbegin\x1b[0m")
  expect(drawn.join("\n")).toContain("step 30")
})
