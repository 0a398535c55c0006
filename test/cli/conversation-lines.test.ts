import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { conversationLines } from "../../src/cli/print/conversation-lines.ts"
import { glyphsOf, type Screen } from "../../src/render/screen.ts"
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

test("a complete conversation can be drawn repeatedly, with the words of the search marked", async () => {
  const { dex, row } = await opened(LONG)
  const lines = await conversationLines(dex, row, { screen: screen(60, true), words: ["beginning"] })
  const drawn = [...lines()]
  expect([...lines()]).toEqual(drawn)
  expect(drawn.join("\n")).toContain("\x1b[7mbegin\x1b[0m")
  expect(drawn.join("\n")).toContain("step 30")
})
