import { appendFileSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { makeDemo } from "../../demo/history.ts"
import { pages } from "../../src/view/serve-view.ts"
import { jsonl, putSession, SESSION, writer } from "../support/claude-code.ts"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { chromiumHere, type Looking, useBrowser } from "./browser.ts"
import { addressesFor, NO_PAGES } from "./every-page.ts"
import { HOSTILE_REF, hostileHome, WORD } from "./hostile-home.ts"
import { BEYOND, COLOUR_FAULTS, DONE_TO_PAGE, FAULTS, HEADINGS, TAB_ORDER } from "./in-page.ts"
import { served, visitOnce } from "./served.ts"

const look = useBrowser()
const quiet = (_: string) => {}
const looked = chromiumHere === undefined ? describe.skip : describe

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

const home = sharedTempDir()
let addresses: string[] = []
beforeAll(async () => {
  const project = makeDemo(home)
  await syncHome(home)
  await warmDex(home, ["usage"])
  addresses = await addressesFor(home, project)
})
const visitor = visitOnce(home)

test("these tests open an address of every page", () => {
  const shown = pages.filter(({ path }) => !NO_PAGES.includes(path))
  const patterns = shown.map(
    ({ path }) => [path, new RegExp(`^${path.replaceAll(/:\w+/g, "[^/?]+").replaceAll(".", "\\.")}(\\?.*)?$`)] as const,
  )
  expect(patterns.filter(([, pattern]) => !addresses.some((one) => pattern.test(one))).map(([path]) => path)).toEqual(
    [],
  )
})

const WIDE = { width: 1440, height: 900 } as const
const PHONE = { width: 390, height: 800 } as const
const ZOOMED = { width: 720, height: 450 } as const // 1,440 pixels at 200 %

/** Whether the focus is in the content, and visible. */
const FOCUSED = `(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement)
  return [document.querySelector("main").contains(document.activeElement), outlineStyle !== "none" && outlineWidth !== "0px"]
})()`

/** The problems of the open page on each screen. No script depends on the size, so the page is loaded only once. */
async function wrongOn({ page }: Looking): Promise<string[]> {
  const wrong: string[] = []
  await page.evaluate(AXE)
  for (const { width, height } of [WIDE, PHONE, ZOOMED]) {
    await page.setViewportSize({ width, height })
    const beyond = await page.evaluate<string>(BEYOND)
    if (beyond !== "") wrong.push(`${width} pixels: ${beyond}`)
    if (width === ZOOMED.width) continue // it has the same colours and elements as on a wide screen
    for (const [colorScheme, faults] of [
      ["light", FAULTS],
      ["dark", COLOUR_FAULTS],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      for (const fault of await page.evaluate<string[]>(faults)) wrong.push(`${width} pixels, ${colorScheme}: ${fault}`)
    }
  }
  wrong.push(...(await page.evaluate<string[]>(HEADINGS)))
  return wrong
}

looked("every page of a demo history", () => {
  test("has no serious accessibility problem and fits the screen: wide, a phone and zoomed in, light and dark", async () => {
    const { view, base } = visitor()
    const looking = await look(view.enter(""))
    for (const address of addresses.filter((one) => one !== "/")) {
      await looking.page.goto(`${base}${address}`)
      expect([address, await wrongOn(looking)]).toEqual([address, []])
    }
    expect(looking.errors).toEqual([])
    expect(looking.requests.filter((url) => !url.startsWith(base))).toEqual([])
  })

  test("loads the slow sections of the home page; then it still has no problem and fits the screen", async () => {
    const { view, base } = visitor()
    const looking = await look(view.enter(""), { viewport: WIDE })
    const { page, errors, requests } = looking
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
    expect(await wrongOn(looking)).toEqual([])
    expect(errors).toEqual([])
    expect(requests.filter((url) => !url.startsWith(base))).toEqual([])
  })

  test("reading works without JavaScript", async () => {
    const { view, base } = visitor()
    const { page } = await look(view.enter(""), { javaScriptEnabled: false })
    for (const address of addresses) {
      const answer = await page.goto(`${base}${address}`)
      expect([address, answer?.status()]).toEqual([address, 200])
      expect([address, (await page.locator("main").innerText()).length > 20]).toEqual([address, true])
    }
  })

  test("Tab goes to everything that can be pressed, in the order in which it is read, and shows where it is", async () => {
    const { view, base } = visitor()
    const { page } = await look(view.enter(""), { viewport: WIDE })
    for (const address of addresses.filter((one) =>
      /^\/(?:find\?q=the|usage|c\/[^/]+|commit.*)?$/.test(one.split("?by")[0]!),
    )) {
      await page.goto(`${base}${address}`)
      await page.locator("[data-late]").first().waitFor({ state: "detached" })
      await page.evaluate("document.activeElement?.blur()")
      expect([address, await page.evaluate(TAB_ORDER)]).toEqual([address, []])
      await page.keyboard.press("Tab")
      expect(await page.evaluate("document.activeElement.className")).toBe("skip")
      await page.keyboard.press("Enter")
      expect(await page.evaluate("document.activeElement.id")).toBe("main")
      await page.keyboard.press("Tab")
      const focused = await page.evaluate(FOCUSED)
      expect([address, focused]).toEqual([address, [true, true]])
    }
  })

  test("everything on the reading page can be reached by keyboard", async () => {
    const { conversations } = JSON.parse((await warmDex(home, ["list", "--json", "-n", "2"])).stdout)
    const { id } = conversations[1]
    const { page } = await look(visitor().view.enter(`c/${encodeURIComponent(id)}`))
    const focused = () => page.evaluate("document.activeElement?.id")
    await page.keyboard.press("n")
    expect(await focused()).toBe("m1")
    await page.keyboard.press("j")
    expect(await focused()).toBe("m2")
    await page.keyboard.press("k")
    expect(await focused()).toBe("m1")
    const open = () => page.locator(".messages details[open]").count()
    const all = await page.locator(".messages details").count()
    await page.keyboard.press("e")
    expect(await open()).toBe(all)
    await page.keyboard.press("e")
    expect(await open()).toBe(0)
    await page.keyboard.press("?")
    await page.locator("dialog table.keys").waitFor()
    await page.keyboard.press("Escape")
    await page.locator("dialog").waitFor({ state: "detached" })
    await page.keyboard.press("/")
    await page.keyboard.type("plateau")
    await page.locator("output", { hasText: /^\d+ matches$/ }).waitFor()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.locator("dialog input").waitFor()
    await page.keyboard.type("usage")
    await page.keyboard.press("Enter")
    await page.waitForURL(/\/usage$/)
  })
})

/** Enough to show every hostile text in every place. `npm run torture -- pages` uses 1,000. */
const HOSTILE = Number(process.env.DEX_HOSTILE_MESSAGES ?? 160)

looked(`${HOSTILE} hostile messages`, () => {
  const home = sharedTempDir()
  beforeAll(async () => {
    hostileHome(home, HOSTILE)
    await syncHome(home)
  })

  test("run no script, send no request and stay in their box, on every page", async () => {
    const view = await served(home, quiet)
    const base = view.url.replace(/\/$/, "")
    const looking = await look(view.enter(""), { viewport: { width: 1000, height: 800 } })
    const project = join(home, "shop <img src=x onerror=window.PWNED=1>")
    const hostilePages = new Set([
      ...(await addressesFor(home, project)),
      `/find?q=${WORD}`,
      `/c/${encodeURIComponent(HOSTILE_REF)}`,
    ])
    for (let from = 1; from < HOSTILE * 1.6; from += 50)
      hostilePages.add(`/c/${encodeURIComponent(HOSTILE_REF)}?from=${from}`)
    for (const address of hostilePages) {
      const answer = await looking.page.goto(`${base}${address}`)
      if (answer?.status() === 404) continue
      const found = await looking.page.evaluate(DONE_TO_PAGE)
      expect([address, found]).toEqual([address, { pwned: undefined, scripts: 1, foreign: 0, handlers: 0, links: 0 }])
      expect([address, await looking.page.evaluate(BEYOND)]).toEqual([address, ""])
    }
    expect(looking.dialogs).toEqual([])
    expect(looking.requests.filter((url) => !url.startsWith(base))).toEqual([])
  })
})

looked("other servers and other pages", () => {
  const home = sharedTempDir()
  beforeAll(async () => {
    const transcript = writer({ cwd: join(home, "shop") })
    transcript.prompt("Add a refresh token")
    putSession(home, transcript.records)
    await syncHome(home)
  })

  test("a second server on this machine neither receives the cookie nor can use it", async () => {
    const received: string[] = []
    const other = createServer((request, answer) => {
      received.push(request.headers.cookie ?? "")
      answer.setHeader("Content-Type", "text/html").end("<p>other</p>")
    }).listen(0, "127.0.0.1")
    onTestFinished(() => void other.close())
    await new Promise((resolve) => other.once("listening", resolve))
    const view = await served(home, quiet)
    const { page } = await look(view.enter(""))
    expect(await page.locator("main").count()).toBe(1)
    const there = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    for (const path of ["/", "/find", "/c/x"]) await page.goto(`${there}${path}`)
    expect(received.every((cookie) => cookie === "")).toBe(true)
    // A page of that server gets nothing from the view either, neither by a request nor by a form.
    const read = await page.evaluate(
      async (url) =>
        fetch(url, { credentials: "include" })
          .then((answer) => answer.text())
          .catch(() => "refused"),
      view.url,
    )
    expect(read).toBe("refused")
    await page.setContent(
      `<form method=post action="${view.url}do/forget"><input name=ref value="claude_code:${SESSION}"><input name=yes value=yes></form>`,
    )
    await page.evaluate("document.querySelector('form').submit()")
    await page.waitForLoadState()
    const { conversations } = JSON.parse((await warmDex(home, ["list", "--json"])).stdout)
    expect(conversations).toHaveLength(1)
  })

  test("a message that an agent writes appears without a reload", async () => {
    const own = tempDir()
    const transcript = writer({ cwd: join(own, "shop") })
    transcript.prompt("First words")
    const file = putSession(own, transcript.records)
    await syncHome(own)
    const view = await served(own, quiet)
    const { page } = await look(view.enter(`c/${encodeURIComponent(`claude_code:${SESSION}`)}`))
    await page.getByText("First words").first().waitFor()
    const before = transcript.records.length
    transcript.answer("m9", [{ type: "text", text: "An answer that was just written." }])
    appendFileSync(file, jsonl(transcript.records.slice(before)))
    await page.getByText("An answer that was just written.").waitFor()
  })
})

looked("home", () => {
  test("updates the newest conversations, and keeps the focus on the same row", async () => {
    const own = await synced()
    const view = await served(own, quiet)
    const { page } = await look(view.enter(""))
    await page.locator("table.projects").waitFor() // the last of what takes longer
    const rows = page.locator(".newest .row")
    await rows.first().focus()
    await page.keyboard.press("j")
    const title = await rows.nth(1).locator("a").textContent()
    claudeSession(own, {
      id: "99999999-9999-4999-8999-999999999999",
      start: new Date().toISOString(),
      title: "It was just written",
      turns: [{ user: "Hello", assistant: "Yes?" }],
    })
    await page.getByText("It was just written").waitFor()
    expect(await page.evaluate("document.activeElement.querySelector('a')?.textContent")).toBe(title)
  })
})
