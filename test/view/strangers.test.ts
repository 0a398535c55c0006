import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { tempDir } from "../support/temp.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { startView } from "./process.ts"

const look = useBrowser()

/** The content of all files in a home, except databases. */
function textsIn(home: string): string {
  return readdirSync(join(home, ".dex"), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && !/\.(db|lock)/.test(one.name))
    .map((one) => readFileSync(join(one.parentPath, one.name), "utf8"))
    .join("\n")
}

/** A server on the port of a view that has ended, with its answer. */
async function squat(port: number, page = ""): Promise<string[]> {
  const received: string[] = []
  const server = createServer((request, answer) => {
    received.push(JSON.stringify([request.url, request.headers]))
    if (page === "") answer.writeHead(500).end()
    else answer.setHeader("Content-Type", "text/html").end(page)
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  return received
}

/** Starts a view, and enters like a browser that keeps cookies. */
async function entered(home: string) {
  const view = await startView(home)
  onTestFinished(() => view.stop())
  const answer = await fetch(view.address, { redirect: "manual" })
  const [cookie, path] = answer.headers.get("set-cookie")!.split("; ")
  return { view, cookie: cookie!, base: path!.replace("Path=", ""), port: Number(new URL(view.address).port) }
}

describe("another user of this machine", () => {
  test("who takes the port of an ended view receives no request, and does not learn the path of the next view", async () => {
    const home = tempDir()
    const first = await entered(home)
    await first.view.stop()
    const received = await squat(first.port)
    const second = await entered(home)
    expect(received).toEqual([])
    expect(second.base).not.toBe(first.base)
    expect(second.port).not.toBe(first.port)
    await second.view.stop()
  })

  test("finds no secret in any file, while it runs or afterwards", async () => {
    const home = tempDir()
    mkdirSync(join(home, ".dex"), { mode: 0o700 })
    writeFileSync(join(home, ".dex", "view.json"), JSON.stringify({ port: 41_000, base: "/older", key: "older" }))
    const { view, cookie, base } = await entered(home)
    const secrets = [base, cookie.replace("dex_view=", ""), new URL(view.address).searchParams.get("code")!]
    for (const secret of secrets) expect(textsIn(home)).not.toContain(secret)
    await view.stop()
    for (const secret of secrets) expect(textsIn(home)).not.toContain(secret)
    expect(textsIn(home)).not.toMatch(/key|code=/)
  })
})

test("the address of an earlier view opens the same page in the new one", async () => {
  const home = tempDir()
  const view = await startView(home, {}, ["http://127.0.0.1:41000/Zk3Zk3Zk3Zk3/usage?by=month"])
  onTestFinished(() => view.stop())
  const page = await (await fetch(view.address)).text()
  expect(page).toMatch(/content="0;url=\/\w{16}\/usage\?by=month"/)
})

test.skipIf(chromiumHere === undefined)(
  "an old tab shows nothing that another program serves at its port",
  async () => {
    const view = await startView(tempDir(), {}, ["nothing", "yet"]) // a page that asks for more as one types
    onTestFinished(() => view.stop())
    const { page } = await look(view.address)
    await page.locator(".finding").waitFor()
    await view.stop()
    const received = await squat(
      Number(new URL(view.address).port),
      '<div class="finding"><p id="theirs">theirs</p><link rel="stylesheet" href="/theirs.css"></div>',
    )
    const field = page.locator(".top .search input[name=q]")
    for (const letter of ["a", "b", "c"]) {
      const answered = page.waitForResponse(/part=1/)
      await field.press(letter)
      await (await answered).finished()
    }
    expect(received.length).toBeGreaterThanOrEqual(3)
    expect(await page.locator("#theirs").count()).toBe(0)
    expect(received.filter((one) => one.includes("theirs.css"))).toEqual([])
  },
)
