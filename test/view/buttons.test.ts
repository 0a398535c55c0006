import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Page } from "playwright-core"
import { beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { makeDemo } from "../../demo/history.ts"
import { actions } from "../../src/view/actions.ts"
import { claudeSession } from "../support/home.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { CONTROLS } from "./controls.ts"
import { addressesFor } from "./every-page.ts"
import { served, visitOnce } from "./served.ts"

const look = useBrowser()
const looked = chromiumHere === undefined ? describe.skip : describe

const home = sharedTempDir()
let project = ""
let addresses: string[] = []
beforeAll(async () => {
  project = makeDemo(home)
  await syncHome(home)
  await warmDex(home, ["usage"])
  addresses = await addressesFor(home, project)
})
const visitor = visitOnce(home)

const json = async (...args: string[]) => JSON.parse((await warmDex(home, [...args, "--json"])).stdout)
const conversations = async () => (await json("list", "-n", "100")).conversations as { id: string; project: string }[]
const privateProjects = async () => (await json("private")).projects as string[]
const notes = async () => (await warmDex(home, ["note"], {}, project)).stdout

/** A browser that was let in, at a page. */
async function at(address: string): Promise<Page> {
  const { view, base } = visitor()
  const { page, context } = await look(view.enter(""))
  await context.grantPermissions(["clipboard-read", "clipboard-write"])
  await page.goto(`${base}${address}`)
  return page
}

const first = (pattern: RegExp) => addresses.find((one) => pattern.test(one))!
const reading = () => first(/^\/c\/[^/]+$/)
const refRead = () => decodeURIComponent(reading().slice("/c/".length))
const copied = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()")

type Fold = { open: boolean }

/** Presses every fold on the page. */
async function pressFolds(page: Page): Promise<void> {
  for (const fold of await page.locator("details").all()) {
    const summary = fold.locator("> summary")
    if (!(await summary.isVisible())) continue // it is inside one that is closed
    const wasOpen = await fold.evaluate((one: Fold) => one.open)
    await summary.click()
    expect(await fold.evaluate((one: Fold) => one.open)).toBe(!wasOpen)
  }
}

/** Opens "More" above a conversation, and presses a button in it. */
async function pressInMore(page: Page, name: string): Promise<void> {
  await page.locator("summary", { hasText: "More" }).click()
  await page.getByRole("button", { name }).click()
}

async function makePrivate(page: Page): Promise<void> {
  await pressInMore(page, "Make this project private…")
  await page.getByRole("button", { name: "Make it private" }).click()
  await page.getByRole("heading", { name: "Private", exact: true }).waitFor()
}

/** Submits a search form with Enter. */
async function sendField(page: Page, field: string, words: string): Promise<void> {
  await page.locator(field).fill(words)
  await page.locator(field).press("Enter")
}

const copies = (name: string, text: () => string) => async () => {
  const page = await at(reading())
  await page.getByRole("button", { name, exact: true }).click()
  await page.getByRole("button", { name: "Copied" }).waitFor()
  expect(await copied(page)).toBe(text())
}

/** Every button and form, with what it must do. Those that delete something come last. */
const EFFECTS: Record<string, () => Promise<void>> = {
  "get /find": async () => {
    const page = await at("/usage")
    await sendField(page, ".top .search input[name=q]", "high water")
    await page.waitForURL(/\/find\?q=high\+water/)
    expect(await page.locator(".finding .row").count()).toBeGreaterThan(0)
  },
  "get /find: Narrow": async () => {
    const page = await at("/find")
    const before = await page.locator(".finding .row").count()
    await page.locator("input[name=file]").fill("no/such/file.xyz")
    await page.getByRole("button", { name: "Narrow" }).click()
    await page.waitForURL(/file=no%2Fsuch/)
    expect([before > 0, await page.locator(".finding .row").count()]).toEqual([true, 0])
  },
  "get /usage: Apply": async () => {
    const page = await at("/usage?by=conversation")
    await page.locator("select[name=project]").selectOption(project)
    await page.getByRole("button", { name: "Apply" }).click()
    await page.waitForURL(/by=conversation.*project=[^&]*lighthouse/)
    expect(await page.locator("main table").count()).toBeGreaterThan(0)
  },
  "get /c/:ref/find": async () => {
    const page = await at(reading())
    const url = page.url()
    await sendField(page, "form.within input", "the")
    await page.locator("output", { hasText: /^1 of \d+$/ }).waitFor()
    for (const [name, position] of [
      ["Next match", /^2 of \d+$/],
      ["Previous match", /^1 of \d+$/],
    ] as const) {
      await page.getByRole("button", { name }).click()
      await page.locator("output", { hasText: position }).waitFor()
    }
    expect(page.url()).toBe(url)
  },
  "button: Copy resume command": copies("Copy resume command", () => `dex resume ${refRead()}`),
  "button: Hand over": copies("Hand over", () => `dex handover ${refRead()}`),
  "button: Copy ref": copies("Copy ref", refRead),
  "button: Copy hash": async () => {
    const page = await at(first(/^\/commit/))
    await page.getByRole("button", { name: "Copy hash" }).click()
    await page.getByRole("button", { name: "Copied" }).waitFor()
    expect(first(/^\/commit/)).toContain(await copied(page))
  },
  "post /do/note: Keep": async () => {
    const page = await at(reading())
    await page.locator("summary", { hasText: "More" }).click()
    await page.locator("input[name=text]").fill("Tides are read at noon")
    await page.getByRole("button", { name: "Keep" }).click()
    await page.waitForURL(/\/c\/[^/]+$/)
    expect(await notes()).toContain("Tides are read at noon")
  },
  "post /do/mark: ☆ Star": async () => {
    const page = await at(reading())
    await page.getByRole("button", { name: "☆ Star" }).click()
    await page.getByRole("button", { name: "★ Starred" }).click()
    await page.getByRole("button", { name: "☆ Star" }).click()
    await page.getByRole("button", { name: "★ Starred" }).waitFor()
    expect((await conversations()).find(({ id }) => id === refRead())).toMatchObject({ tags: ["starred"] })
  },
  "post /do/mark: Save": async () => {
    const page = await at(reading())
    const save = async (title: string, tags: string) => {
      await page.locator("summary", { hasText: "More" }).click()
      await page.locator("input[name=title]").fill(title)
      await page.locator("input[name=tags]").fill(tags)
      await page.getByRole("button", { name: "Save" }).click()
    }
    const before = await page.locator("h1").innerText()
    await save("<b>Tides</b>", "sea Moon")
    await page.getByRole("heading", { name: "Tides" }).waitFor()
    expect(await page.locator("h1 b").count()).toBe(0)
    await page.getByRole("link", { name: "#moon" }).click()
    await page.waitForURL(/\/find\?q=tag%3Amoon/)
    expect(await page.locator(".finding .row").count()).toBe(1)
    await page.goto(`${visitor().base}${reading()}`)
    await save("", "moon")
    await page.getByRole("heading", { name: before }).waitFor()
    expect(await page.locator("a.tag").allInnerTexts()).toEqual(["#moon"])
  },
  "post /do/private: Make this project private…": async () => {
    const page = await at(reading())
    await pressInMore(page, "Make this project private…")
    await page.getByRole("heading", { name: "Make it private?" }).waitFor()
    expect(await privateProjects()).toEqual([]) // it asks first
  },
  "post /do/private: Make it private": async () => {
    const page = await at(reading())
    await makePrivate(page)
    expect(await privateProjects()).toEqual([project])
    await warmDex(home, ["private", project, "--off"])
  },
  "post /do/private: Undo": async () => {
    const page = await at(reading())
    await makePrivate(page)
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByRole("heading", { name: "No longer private" }).waitFor()
    expect(await privateProjects()).toEqual([])
  },
  "post /do/sync: Sync now": async () => {
    const own = tempDir()
    const empty = await served(own, () => {})
    for (const address of ["", "usage", "find"]) {
      const { page } = await look(empty.enter(address))
      await page.getByRole("button", { name: "Sync now" }).waitFor()
    }
    const { page } = await look(empty.enter(""))
    claudeSession(own, { id: "1", start: "2026-11-01T10:00:00Z", title: "It was there", turns: [{ user: "Hello" }] })
    await page.getByRole("button", { name: "Sync now" }).click()
    await page.locator(".newest").getByText("It was there").waitFor()
  },
  "post /do/forget: Forget…": async () => {
    const page = await at(reading())
    await pressInMore(page, "Forget…")
    await page.getByRole("heading", { name: "Delete permanently?" }).waitFor()
    expect((await conversations()).map(({ id }) => id)).toContain(refRead()) // it asks first
  },
  "post /do/forget: Delete permanently": async () => {
    const page = await at(reading())
    await pressInMore(page, "Forget…")
    await page.getByRole("button", { name: "Delete permanently" }).click()
    await page.getByRole("heading", { name: "1 conversation forgotten" }).waitFor()
    expect((await conversations()).map(({ id }) => id)).not.toContain(refRead())
  },
}

looked("controls on the pages of the view", () => {
  test("folds work, each button and form has a check below, and every action has a button", async () => {
    const { base } = visitor()
    const page = await at("/find")
    const found = new Set<string>()
    const collect = async () => {
      for (const name of await page.evaluate<string[]>(CONTROLS)) found.add(name)
    }
    for (const address of addresses) {
      await page.goto(`${base}${address}`)
      await collect()
      await pressFolds(page)
    }
    // These pages have no address, because they are the response to a button.
    for (const [button, answer] of [
      ["Forget…", "Delete permanently?"],
      ["Make this project private…", "Make it private?"],
    ] as const) {
      await page.goto(`${base}${reading()}`)
      await pressInMore(page, button)
      await page.getByRole("heading", { name: answer }).waitFor()
      await collect()
    }
    await page.getByRole("button", { name: "Make it private" }).click()
    await page.getByRole("heading", { name: "Private", exact: true }).waitFor()
    await collect()
    const empty = await served(tempDir(), () => {})
    await page.goto(empty.enter(""))
    await page.waitForURL(({ pathname }) => pathname !== "/enter")
    await collect()
    await warmDex(home, ["private", project, "--off"])
    expect([...found].toSorted()).toEqual(["fold", ...Object.keys(EFFECTS)].toSorted())
    const changing = [...found].flatMap((name) => /^post ([^:]+)/.exec(name)?.[1] ?? [])
    expect([...new Set(changing)].toSorted()).toEqual(actions.map(({ path }) => path).toSorted())
  })

  test.each(Object.keys(EFFECTS))("%s does what it says", (name) => EFFECTS[name]!())
})

looked("a form that the view did not send", () => {
  /** The page of another server on this machine. Here it knows the address, which no other server can know. */
  async function stranger(page: string): Promise<string> {
    const server = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end(page))
    server.listen(0, "127.0.0.1")
    onTestFinished(() => void server.close())
    await new Promise((resolve) => server.once("listening", resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  }

  const form = (address: string, fields: Record<string, string>) => {
    const inputs = Object.entries(fields).map(([name, value]) => `<input name=${name} value='${value}'>`)
    return `<form method=post action='${address}'>${inputs.join("")}<button>Send</button></form>`
  }

  test.each(["another server", "a frame without an origin", "the view itself, without its token"])(
    "is refused when it comes from %s",
    async (from) => {
      const { view } = visitor()
      const { id } = (await conversations())[0]!
      const { page } = await look(view.enter(""))
      const token = await page.locator("meta[name=dex-token]").getAttribute("content")
      const fields = { ref: id, yes: "yes", token: token! }
      const address = `${view.url}do/forget`
      const answered = page.waitForEvent("response", (response) => response.url() === address)
      if (from === "another server") await page.goto(await stranger(form(address, fields)))
      else if (from === "a frame without an origin") {
        const framed = form(address, fields).replaceAll('"', "&quot;")
        await page.goto(await stranger(`<iframe sandbox="allow-forms allow-scripts" srcdoc="${framed}"></iframe>`))
      } else {
        const inPage = form(address, { ...fields, token: "wrong" })
        await page.evaluate(`document.querySelector("main").innerHTML = ${JSON.stringify(inPage)}`)
      }
      const place = from === "a frame without an origin" ? page.frameLocator("iframe") : page
      await place.getByRole("button", { name: "Send" }).click()
      const response = await answered
      const { cookie, origin } = await response.request().allHeaders()
      // The browser did send the cookie, so the request was not refused for lack of it.
      if (from !== "a frame without an origin") expect(cookie).toContain("dex_view=")
      expect([response.status(), origin === "null"]).toEqual([403, from === "a frame without an origin"])
      expect((await conversations()).map((one) => one.id)).toContain(id)
    },
  )
})
