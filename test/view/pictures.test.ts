import { globSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, test } from "vitest"
import { chromiumHere, useBrowser } from "./browser.ts"
import { DRAWN } from "./in-page.ts"

const ROOT = join(import.meta.dirname, "../..")
const drawings = globSync("{docs,src,plugins,demo}/**/*.svg", { cwd: ROOT })

const look = useBrowser()
const looked = chromiumHere === undefined ? describe.skip : describe

type Drawn = { written: string[]; drawn: string[]; lines: string[] }

looked("the drawings in this repository", () => {
  test.each(drawings)("the words of %s stand in a browser as they are written", async (file) => {
    const { page } = await look(pathToFileURL(join(ROOT, file)).href)
    const { written, drawn } = await page.evaluate<Drawn>(DRAWN)
    expect(drawn).toEqual(written)
  })

  test("the README's picture shows the picker, line by line", async () => {
    const { page } = await look(pathToFileURL(join(ROOT, "docs/picker.svg")).href)
    const { lines } = await page.evaluate<Drawn>(DRAWN)
    const [typed, , ...rows] = lines
    expect(typed).toMatch(/^❯ refresh tok 4$/)
    const titles = [
      "Refresh token race",
      "Store tokens in the keychain",
      "OAuth callback loops",
      "Retry failed webhooks",
    ]
    const found = titles.map((title) => rows.findIndex((line) => line.includes(title)))
    expect(found.every((row) => row >= 0)).toBe(true)
    expect(found).toEqual(found.toSorted((a, b) => a - b))
    expect(rows.join("\n")).toContain("Why do two tabs log each other out?")
  })
})
