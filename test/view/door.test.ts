import { describe, expect, test } from "vitest"
import { actions } from "../../src/view/actions.ts"
import { pages } from "../../src/view/serve-view.ts"
import { syncedOnce } from "../support/synced.ts"
import { served, visitOnce } from "./served.ts"

const home = syncedOnce()
const visitor = visitOnce(home)

/** Every path, with values for its parameters. */
const paths = [...pages, ...actions].map(({ path }) => path.replaceAll(/:\w+/g, "1"))

/** The address to which the entry page refreshes. */
const leadsTo = (page: string) => /content="0;url=([^"]+)"/.exec(page)![1]!

describe("the door of the view", () => {
  test("no route returns any content without the cookie", async () => {
    const { base } = visitor()
    const closed = await (await fetch(`${base}/`)).text()
    expect(closed).toContain("dex view")
    for (const path of [...paths, "/assets/x", "/changes", "/no/such"])
      for (const [method, cookie] of [
        ["GET", undefined],
        ["GET", "dex_view="],
        ["GET", "dex_view=wrong"],
        // It has the same length as the right one.
        ["GET", `dex_view=${"A".repeat(43)}`],
        ["POST", undefined],
        ["POST", "dex_view=wrong"],
        ["DELETE", undefined],
      ] as const) {
        const answer = await fetch(`${base}${path}`, { method, headers: cookie ? { cookie } : {} })
        expect([path, method, answer.status]).toEqual([path, method, 401])
        expect(await answer.text()).toBe(closed)
      }
  })

  test("a code lets one browser in, once", async () => {
    const { view } = visitor()
    const address = view.enter("find?q=x")
    const first = await fetch(address, { redirect: "manual" })
    expect([first.status, leadsTo(await first.text())]).toEqual([200, expect.stringMatching(/^\/\w+\/find\?q=x$/)])
    expect(first.headers.get("set-cookie")).toMatch(/^dex_view=[\w-]{43}; Path=\/\w+; HttpOnly; SameSite=Strict$/)
    const second = await fetch(address, { redirect: "manual" })
    expect([second.status, second.headers.get("set-cookie")]).toEqual([401, null])
  })

  test("the entry leads only to addresses of the view", async () => {
    const { view, base } = visitor()
    for (const to of ["//evil.example/", "https://evil.example/", "\\\\evil.example", "..//x", "javascript:alert(1)"]) {
      const answer = await fetch(`${view.enter("")}&to=${encodeURIComponent(to)}`, { redirect: "manual" })
      const location = new URL(leadsTo(await answer.text()), base)
      expect(location.origin).toBe(new URL(base).origin)
      expect(location.pathname.startsWith(new URL(base).pathname)).toBe(true)
    }
  })

  test("every response forbids foreign scripts, frames and requests", async () => {
    const { get } = visitor()
    for (const path of ["/", "/no/such"]) {
      const { headers } = await get(path)
      expect(headers.get("content-security-policy")).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      )
      expect(headers.get("referrer-policy")).toBe("same-origin")
      expect(headers.get("x-content-type-options")).toBe("nosniff")
    }
  })

  test("another Host, another Origin, or a page of another server is refused, cookie or not", async () => {
    const { get, base } = visitor()
    expect((await get("/")).status).toBe(200)
    const foreign: Record<string, string>[] = [
      { origin: "http://evil.example" },
      { origin: "null" },
      { origin: "http://127.0.0.1:1" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ]
    for (const headers of foreign) expect((await get("/", headers)).status).toBe(403)
    const { hostname, port, pathname } = new URL(base)
    const { request } = await import("node:http")
    const status = await new Promise((resolve) =>
      request({ hostname, port, path: `${pathname}/`, headers: { host: `evil.example:${port}` } }, (answer) =>
        resolve(answer.statusCode),
      ).end(),
    )
    expect(status).toBe(403)
  })

  test("every change needs the page's token too", async () => {
    const { base, cookie, get } = visitor()
    const page = await (await get("/")).text()
    expect(page).toMatch(/<meta name="dex-token" content="[\w-]{43}">/)
    for (const { path } of actions)
      for (const token of ["", "wrong"]) {
        const body = new URLSearchParams({ token })
        const answer = await fetch(`${base}${path}`, { method: "POST", headers: { cookie }, body })
        expect([path, answer.status]).toEqual([path, 403])
      }
  })

  test("the address that lets a browser in does not name the path of the pages, and may be opened from elsewhere", async () => {
    const { view, base } = visitor()
    const address = view.enter("")
    expect(address).not.toContain(new URL(base).pathname.slice(1))
    const elsewhere = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }
    const framed = await fetch(address, { headers: { ...elsewhere, "sec-fetch-dest": "iframe" } })
    expect([framed.status, framed.headers.get("set-cookie")]).toEqual([403, null])
    const opened = await fetch(address, { headers: { ...elsewhere, "sec-fetch-dest": "document" } })
    expect(opened.status).toBe(200)
  })

  test("it ends when nobody looks at a page", async () => {
    const view = await served(home, () => {}, 50)
    expect(await view.ended).toBe("idle")
    await expect(fetch(view.url)).rejects.toThrow()
  })
})
