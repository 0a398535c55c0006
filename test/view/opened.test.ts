import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, onTestFinished, test } from "vitest"
import { tempDir } from "../support/temp.ts"
import { hasTmux, openScreen, program } from "../support/tmux.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { startView } from "./process.ts"

const look = useBrowser()
const looked = chromiumHere === undefined || !hasTmux ? describe.skip : describe

/** A terminal on which `dex view` opens a browser that only records how it was started. */
async function terminal(home: string) {
  program(home, "xdg-open", `tr '\\0' '\\n' < /proc/$$/cmdline > "$HOME/opening"; mv "$HOME/opening" "$HOME/opened"`)
  return openScreen(home, { columns: 200, rows: 20, env: { DISPLAY: ":9" } })
}

/** The browser's command line, which every user can read. */
async function commandLine(home: string): Promise<string[]> {
  const file = join(home, "opened")
  await expect.poll(() => existsSync(file)).toBe(true)
  return readFileSync(file, "utf8").trim().split("\n")
}

const pagesIn = (home: string) => readdirSync(join(home, ".dex", "view")).filter((name) => name.endsWith(".html"))

looked("the browser that `dex view` opens", () => {
  test("gets a file of its own, with no secret in its command line; the file lets it in once, and is then deleted", async () => {
    const home = tempDir()
    const screen = await terminal(home)
    await screen.type("dex view; echo ended")
    await screen.keys("Enter")
    await screen.shows("Ctrl-C stops it")
    const words = await commandLine(home)
    expect(words.join(" ")).not.toMatch(/code|http:|127\.0\.0\.1/)
    const address = words.find((word) => word.startsWith("file://"))!
    const page = fileURLToPath(address)
    expect([lstatSync(page).mode & 0o777, lstatSync(join(page, "..")).mode & 0o777]).toEqual([0o600, 0o700])
    const copy = readFileSync(page, "utf8")
    const { page: tab } = await look(address)
    await tab.waitForURL(/^http:\/\/127\.0\.0\.1:\d+\/\w{16}\/$/)
    expect(await tab.locator("main h1").textContent()).toBe("Nothing yet")
    expect(existsSync(page)).toBe(false)
    // A copy of the file is useless.
    const [, code] = /url=(http:[^"]+)"/.exec(copy)!
    expect((await fetch(code!)).status).toBe(401)
    await screen.keys("C-c")
    await screen.shows(/\^C\s*ended/)
    expect(pagesIn(home)).toEqual([])
  })

  test("a second `dex view` opens a file that the first wrote, and unopened files are deleted at the end", async () => {
    const home = tempDir()
    const first = await startView(home)
    onTestFinished(() => first.stop())
    const screen = await terminal(home)
    await screen.type("dex view usage; echo done")
    await screen.keys("Enter")
    await screen.shows(/^done/m)
    const words = await commandLine(home)
    expect(words.join(" ")).not.toMatch(/code|http:|127\.0\.0\.1/)
    const address = words.find((word) => word.startsWith("file://"))!
    expect(pagesIn(home)).toEqual([address.split("/").at(-1)])
    await first.stop()
    expect(pagesIn(home)).toEqual([])
  })

  test("if it shows nothing, the terminal has the address", async () => {
    const home = tempDir()
    const screen = await terminal(home)
    await screen.type("dex view")
    await screen.keys("Enter")
    const [address] = /http:\/\/127\.0\.0\.1:\d+\/enter\?code=[\w-]+/.exec(await screen.shows("Ctrl-C stops it"))!
    expect((await fetch(address)).status).toBe(200)
    expect(pagesIn(home)).toEqual([]) // its code was used
  })
})
