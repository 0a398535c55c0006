import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"
import { beforeAll, describe, expect, test } from "vitest"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"
import { sharedTempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { BEYOND, COLOUR_FAULTS, FAULTS } from "./in-page.ts"
import { visitOnce } from "./served.ts"

const home = sharedTempDir()
const look = useBrowser()
const visitor = visitOnce(home)
const PATH = `c/${encodeURIComponent(`claude_code:${SESSION}`)}`
const TURNS = 60
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

// Over two parts: an edit with two changes and a new file at the beginning, and in every turn a folded output.
beforeAll(async () => {
  const transcript = writer({ cwd: "/code/zoo" })
  const edit = (id: string, filePath: string, lines: string[]) => {
    transcript.answer(`m_${id}`, [call(id, "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
    const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines }]
    transcript.result(id, "updated", { toolUseResult: { filePath, structuredPatch } })
  }
  transcript.prompt("Find the numbat, near an echidna")
  edit("e1", "/code/zoo/a.ts", [
    " // start",
    '-const a = "one" // old',
    '+const a = "two" // new',
    " // middle",
    "+let b = 2",
    " // end",
  ])
  edit("e2", "/code/zoo/b.ts", ["+const c = 3"])
  const coloured = 'class B { @a() m(x: number, /r/) { return `${true}` + "s" + 4 + this.y } } // c'
  edit("e3", "/code/zoo/c.ts", [` ${coloured}`, `-${coloured}`, `+${coloured.replace("4", "5")}`])
  for (let turn = 0; turn < TURNS; turn++) {
    transcript.answer(`a${turn}`, [call(`c${turn}`, "Bash", { command: `echo ${turn}` })])
    transcript.result(`c${turn}`, turn === 1 || turn === 50 ? "a\nnumbat here,\nand another NUMBAT" : "nothing")
    transcript.answer(`b${turn}`, [{ type: "text", text: turn === 2 ? "The **numbat** is found." : `Turn ${turn}.` }])
  }
  putSession(home, transcript.records)
  await syncHome(home)
})

/** The text of the current match, and whether it is on the screen. */
const CURRENT = `(() => {
  const [range] = CSS.highlights.get("current-match")
  const { top, bottom } = range.getBoundingClientRect()
  return [range.toString(), top > 0 && bottom < innerHeight && bottom > top]
})()`

describe.skipIf(chromiumHere === undefined)("reading in a browser", () => {
  const open = async (options?: Parameters<typeof look>[1]) =>
    look(visitor().view.enter(PATH), { viewport: { width: 1440, height: 800 }, ...options })

  const position = (page: Page, says: string) => page.locator("form.within output", { hasText: says }).waitFor()

  test("finds words in place: from match to match, in folded outputs and in parts that are not on the page yet", async () => {
    const { page, errors } = await open()
    let loads = 0
    page.on("domcontentloaded", () => loads++)
    await page.keyboard.press("/")
    await page.keyboard.type("numbat")
    await position(page, "about 6 matches")
    const { pathname } = new URL(page.url())
    for (const [key, says, text] of [
      ["Enter", "1 of about 6", "numbat"],
      ["Enter", "2 of about 6", "numbat"],
      ["Enter", "3 of about 6", "NUMBAT"],
      ["Shift+Enter", "2 of about 6", "numbat"],
      ["Enter", "3 of about 6", "NUMBAT"],
      ["Enter", "4 of about 6", "numbat"],
    ] as const) {
      await page.keyboard.press(key)
      await position(page, says)
      expect([says, await page.evaluate(CURRENT)]).toEqual([says, [text, true]])
    }
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await position(page, "5 of")
    expect(await page.evaluate(CURRENT)).toEqual(["numbat", true])
    await page.keyboard.press("n")
    await position(page, "6 of")
    expect(await page.evaluate(CURRENT)).toEqual(["NUMBAT", true])
    await page.keyboard.press("n") // after the last one, the first
    await position(page, "1 of")
    await page.keyboard.press("N")
    await position(page, "6 of")
    expect(new URL(page.url()).pathname).toBe(pathname)
    expect([loads, errors]).toEqual([0, []])
    await page.keyboard.press("Escape")
    expect(await page.evaluate("CSS.highlights.get('match').size")).toBe(0)
  })

  test("finds words that are on several lines, and says if there are none", async () => {
    const { page } = await open()
    await page.keyboard.press("/")
    await page.keyboard.type("numbat here, and")
    await position(page, "about 2 matches")
    await page.keyboard.type("x")
    await position(page, "No matches")
    await page.keyboard.press("Enter")
    await position(page, "No matches")
  })

  test("c and C go from change to change", async () => {
    const { page } = await open()
    const focused = () => page.evaluate("document.activeElement.textContent")
    const seen: unknown[] = []
    for (const key of ["c", "c", "c", "C"]) {
      await page.keyboard.press(key)
      seen.push(await focused())
    }
    expect(seen).toEqual(['const a = "one" // oldconst a = "two" // new', "let b = 2", "const c = 3", "let b = 2"])
  })

  test("a page with changes and marked words has no serious accessibility problem, and fits every screen", async () => {
    const { page } = await open()
    await page.keyboard.press("/")
    await page.keyboard.type("numbat")
    await position(page, "about 6 matches")
    await page.evaluate(AXE)
    for (const width of [1960, 1440, 390]) {
      await page.setViewportSize({ width, height: 800 })
      expect([width, await page.evaluate(BEYOND)]).toEqual([width, ""])
      for (const [colorScheme, faults] of [
        ["light", FAULTS],
        ["dark", COLOUR_FAULTS],
      ] as const) {
        await page.emulateMedia({ colorScheme })
        expect([width, colorScheme, await page.evaluate(faults)]).toEqual([width, colorScheme, []])
      }
    }
  })

  test("a phone folds the outline, and opens it on request", async () => {
    const { page } = await open({ viewport: { width: 390, height: 800 } })
    const prompts = page.locator(".outline ol")
    expect(await prompts.isVisible()).toBe(false)
    await page.locator(".outline summary").click()
    await prompts.waitFor()
  })

  /** The left edges of a change's removed and added line, and their signs. */
  const SIDES = `[...document.querySelector(".diff.two").querySelectorAll("del, ins")].map((line) =>
    [Math.round(line.getBoundingClientRect().left), getComputedStyle(line, "::after").content])`

  test("a change is side by side only where it has 1,100 pixels, never if it only adds; it has its signs everywhere", async () => {
    const { page } = await open()
    for (const [width, isSplit] of [
      [1960, true],
      [1440, false],
      [1100, false],
      [390, false],
    ] as const) {
      await page.setViewportSize({ width, height: 800 })
      const sides = await page.evaluate<[number, string][]>(SIDES)
      expect(sides.map(([, sign]) => sign)).toEqual(['"−"', '"+"', '"+"'])
      expect([width, sides[1]![0] > sides[0]![0] + 500]).toEqual([width, isSplit])
      const only = page.locator(".diff:not(.two) ins").first()
      const [line, whole] = [
        (await only.boundingBox())!,
        (await page.locator(".diff:not(.two)").first().boundingBox())!,
      ]
      expect([width, whole.width - line.width < 4]).toEqual([width, true])
      expect(await page.locator(".was").first().isVisible()).toBe(isSplit)
    }
  })
})
