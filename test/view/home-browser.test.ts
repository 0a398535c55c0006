import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { beforeAll, describe, expect, test } from "vitest"
import { makeDemo } from "../../demo/history.ts"
import { claudeSession } from "../support/home.ts"
import { sharedTempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { BEYOND, FAULTS } from "./in-page.ts"
import { served } from "./served.ts"

const look = useBrowser()
const looked = chromiumHere === undefined ? describe.skip : describe
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

looked("home in a browser", () => {
  const home = sharedTempDir()
  beforeAll(async () => {
    makeDemo(home)
    await syncHome(home)
    await warmDex(home, ["usage"])
  })

  test.each([1400, 375])("what takes longer comes, without a fault and within %i pixels", async (width) => {
    const view = await served(home, () => {})
    const { page, errors } = await look(view.enter(""), { viewport: { width, height: 900 } })
    await page.locator("table.projects").waitFor() // the last of them
    expect(await page.locator("h2").allTextContents()).toEqual([
      "Tokens by day",
      "Newest",
      "Left open",
      "Deleted soon",
      "Money and tokens",
      "Projects",
    ])
    for (const closed of await page.locator("details > summary").all()) await closed.click()
    expect(await page.evaluate(BEYOND)).toBe("")
    await page.evaluate(AXE)
    expect(await page.evaluate(FAULTS)).toEqual([])
    expect(errors).toEqual([])
  })

  test("the newest follow, and who stands on a row stays on it", async () => {
    const view = await served(home, () => {})
    const { page } = await look(view.enter(""))
    await page.locator("table.projects").waitFor() // the last of them
    const rows = page.locator(".newest .row")
    await rows.first().focus()
    await page.keyboard.press("j")
    const title = await rows.nth(1).locator("a").textContent()
    claudeSession(home, {
      id: "99999999-9999-4999-8999-999999999999",
      start: new Date().toISOString(),
      title: "It was just written",
      turns: [{ user: "Hello", assistant: "Yes?" }],
    })
    await page.getByText("It was just written").waitFor()
    expect(await page.evaluate("document.activeElement.querySelector('a')?.textContent")).toBe(title)
  })
})
