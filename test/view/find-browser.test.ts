import type { Page } from "playwright-core"
import { describe, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { served, visitOnce } from "./served.ts"

const home = syncedOnce((home) =>
  claudeSession(home, {
    id: "44444444-4444-4444-8444-444444444444",
    start: "2026-11-09T10:00:00Z",
    title: "Tokens of the theme",
    turns: [{ user: "rename the colour tokens of the theme" }, { assistant: "renamed" }],
  }),
)

const look = useBrowser()
const visitor = visitOnce(home)

/** Elements that should be on one line, but are wrapped. */
const BROKEN = `[...document.querySelectorAll(".why[open] th, .why[open] .number, .row .line > :not([title])")]
  .filter((one) => {
    const range = document.createRange()
    range.selectNodeContents(one)
    return new Set([...range.getClientRects()].map(({ top }) => top)).size > 1
  })
  .map((one) => one.textContent)`

describe.skipIf(chromiumHere === undefined)("finding in a browser", () => {
  const open = (path: string, options?: Parameters<typeof look>[1]) => look(visitor().view.enter(path), options)

  const titles = (page: Page) => page.locator(".row a.title")

  test("shows rows while a person types, and ranks them when they pause; the address is updated", async () => {
    const { page, errors } = await open("find")
    const addresses: string[] = []
    page.on("request", (request) => void (request.url().includes("/find?") && addresses.push(request.url())))
    await page.keyboard.type("sideb")
    await titles(page).filter({ hasText: "sidebar" }).waitFor()
    await page.locator(".why").first().waitFor({ state: "attached" })
    expect(await titles(page).count()).toBe(1)
    expect(new URL(page.url()).search).toBe("?q=sideb")
    expect(addresses.filter((address) => address.endsWith("quick=1"))).toHaveLength(5)
    expect(addresses.at(-1)).toMatch(/q=sideb&part=1$/)
    await page.reload()
    expect(await titles(page).count()).toBe(1)
    expect(errors).toEqual([])
  })

  test("j, k and Enter go through the rows", async () => {
    const { page } = await open("find?q=token")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    expect(await page.locator(".row:focus a.title").textContent()).toBe(await titles(page).nth(1).textContent())
    await page.keyboard.press("k")
    const address = await titles(page).first().getAttribute("href")
    await page.keyboard.press("Enter")
    await page.locator(".reading").waitFor()
    expect(page.url()).toContain(address!.split("?")[0])
  })

  test("the palette searches, arrows and Enter choose, and Escape closes it", async () => {
    const { page, errors } = await open("find")
    await page.keyboard.press("Escape") // out of the field
    await page.keyboard.press("Control+k")
    const options = page.locator("dialog [role=option]")
    expect(await options.allTextContents()).toEqual([
      "Home what happened lately",
      "Find search everything",
      "Usage tokens and money",
    ])
    await page.keyboard.type("token ref")
    await options.filter({ hasText: "Refresh token race" }).waitFor()
    expect(await options.first().textContent()).toMatch(/^Refresh token race api /)
    await page.keyboard.press("Escape")
    await page.locator("dialog").waitFor({ state: "detached" })
    await page.keyboard.press("Meta+k")
    const last = page.waitForResponse(/q=tokens&quick=1$/)
    await page.keyboard.type("tokens")
    await last
    await options.nth(1).waitFor()
    await page.keyboard.press("ArrowDown")
    const chosen = page.locator("dialog [aria-selected=true] b")
    const title = await chosen.textContent()
    await page.keyboard.press("Enter")
    await page.locator(".reading").waitFor()
    expect(await page.locator("h1").textContent()).toBe(title)
    expect(errors).toEqual([])
  })

  test("a phone wraps neither a number nor the name next to it", async () => {
    const { page } = await open("find?q=token")
    await page.locator(".why summary").first().click()
    for (let width = 320; width <= 420; width += 4) {
      await page.setViewportSize({ width, height: 800 })
      expect([width, await page.evaluate(BROKEN)]).toEqual([width, []])
    }
  })

  test("a chart says the value of a bar that has the focus, the pointer or the arrow keys", async () => {
    const { page, errors } = await open("find")
    const bar = page.locator("svg.months a").last()
    await bar.focus()
    expect(await page.locator(".narrow .value").textContent()).toBe(await bar.getAttribute("aria-label"))
    await page.locator("svg.months g").first().hover()
    expect(await page.locator(".narrow .value").textContent()).toMatch(/: 0 conversations$/)
    await page.locator(".top nav a", { hasText: "Usage" }).click()
    const chart = page.locator(".charts .chart").last()
    const columns = chart.locator("[data-value]")
    const wanted = [await columns.last().getAttribute("data-value"), await columns.first().getAttribute("data-value")]
    await chart.locator("svg").focus()
    expect(await chart.locator(".value").textContent()).toBe(wanted[0])
    await page.keyboard.press("Home")
    expect(await chart.locator(".value").textContent()).toBe(wanted[1])
    await page.keyboard.press("ArrowRight")
    expect(await chart.locator(".value").textContent()).toBe(await columns.nth(1).getAttribute("data-value"))
    expect(errors).toEqual([])
  })

  test("a listing is updated while agents write, and search results are not", async () => {
    const own = await synced()
    const view = await served(own, () => {})
    const [listed, searched] = [await look(view.enter("find")), await look(view.enter("find?q=sidebar"))]
    const before = await titles(searched.page).allTextContents()
    claudeSession(own, {
      id: "99999999-9999-4999-8999-999999999999",
      start: "2026-11-10T10:00:00Z",
      title: "The sidebar was just written",
      turns: [{ user: "the sidebar again" }],
    })
    await titles(listed.page).filter({ hasText: "just written" }).waitFor()
    expect(await titles(searched.page).allTextContents()).toEqual(before)
  })

  test("without JavaScript it searches, filters and removes filters", async () => {
    const { page } = await open("find", { javaScriptEnabled: false })
    await page.locator("svg.months a").last().click()
    await page.locator(".chips").waitFor()
    await page.locator(".search input[name=q]").fill("token")
    await page.keyboard.press("Enter")
    await page.locator("h1", { hasText: "token" }).waitFor()
    expect(new URL(page.url()).searchParams.get("from")).toBe("2026-11")
    await page.locator(".chips a").click()
    await page.locator(".chips").waitFor({ state: "detached" })
    expect(new URL(page.url()).search).toBe("?q=token")
  })
})
