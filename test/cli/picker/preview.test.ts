import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../../src/app/dex.ts"
import { previewOf } from "../../../src/cli/picker/look-up.ts"
import { previewLines } from "../../../src/cli/picker/screen.ts"
import { glyphsOf } from "../../../src/render/screen.ts"
import { widthOf } from "../../../src/render/terminal.ts"
import { claudeSession } from "../../support/home.ts"
import { tempDir } from "../../support/temp.ts"
import { syncHome } from "../../support/warm.ts"

const ID = "11111111-1111-4111-8111-111111111111"
const EVIL = "a\x1b]0;owned\x07b\x1b[2Jc\u202ed\x9b31me\rg\x08h"
const ANSWER = `It is **rotated**, see \`auth.ts\`.

\`\`\`ts
const used = true // 日本語のタイトルがここにあります、とても長いので
\`\`\``

async function preview(color: boolean, columns = 50) {
  const home = tempDir()
  claudeSession(home, {
    id: ID,
    start: "2026-11-12T09:00:00Z",
    title: "Refresh token race",
    turns: [
      { user: `Why is it used? ${EVIL}` },
      { assistant: ANSWER },
      { tool: { name: "Bash", input: { command: "npm test" }, output: "one\nFAIL\nthree", error: true } },
      { assistant: `${EVIL} done` },
    ],
  })
  await syncHome(home)
  const opened = createDex({ env: { HOME: home }, cwd: home, version: "test" })
  onTestFinished(() => opened.close())
  const found = await previewOf(opened, { ref: `claude_code:${ID}` }, { columns, color, glyphs: glyphsOf({}) })
  return (typed = "", rows = 60) => previewLines(found!, columns, rows, typed, { color })
}

const plain = (lines: string[]) => lines.map((line) => line.replaceAll(/\x1b\[[\d;]*m/g, ""))

test("a preview shows messages like the reader: Markdown and code, and calls on one line with their outcome", async () => {
  const lines = plain((await preview(true))())
  expect(lines).toContain("It is rotated, see auth.ts.")
  expect(lines.find((line) => line.startsWith("▸"))).toMatch(/^▸ Bash npm test ✗.*3 lines/)
  expect(lines).toContainEqual(expect.stringMatching(/^You · #1 · /))
  expect(lines).toContainEqual(expect.stringMatching(/^│ Why is it used\?/))
  expect(lines.join("\n")).not.toContain("```")
})

test("no line is too wide, and only text from a transcript reaches the terminal", async () => {
  for (const [color, columns] of [
    [true, 44],
    [false, 50],
  ] as const) {
    const lines = (await preview(color, columns))("used owned")
    expect(plain(lines).filter((line) => widthOf(line) > columns)).toEqual([])
    expect(plain(lines).join("")).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
  }
})

test("marks the words while they are typed, if there are colours", async () => {
  const typed = (await preview(true))("rota")
  expect(typed.find((line) => line.includes("see"))).toMatch(/\x1b\[7mrota\x1b\[0m/)
  expect((await preview(false))("rota").join("")).not.toContain("\x1b")
})
