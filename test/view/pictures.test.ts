import { execFileSync, spawnSync } from "node:child_process"
import { globSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { beforeAll, describe, expect, test } from "vitest"
import { makeDemo } from "../../demo/history.ts"
import { PICTURES, SIZE, takePictures } from "../../scripts/take-pictures.ts"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { DRAWN } from "./in-page.ts"

const ROOT = join(import.meta.dirname, "../..")
const drawings = globSync("{docs,src,plugins,demo}/**/*.svg", { cwd: ROOT })

const look = useBrowser()
const looked = chromiumHere === undefined ? describe.skip : describe

type Drawn = { written: string[]; drawn: string[]; lines: string[] }

looked("the drawings in this repository", () => {
  test.each(drawings)("a browser shows the words of %s as they are written", async (file) => {
    const { page } = await look(pathToFileURL(join(ROOT, file)).href)
    const { written, drawn } = await page.evaluate<Drawn>(DRAWN)
    expect(drawn).toEqual(written)
  })

  test("the README's picture shows a search, the conversation and why a line was written, one after the other", async () => {
    const { page } = await look(pathToFileURL(join(ROOT, "docs/dex.svg")).href)
    const screens = await page.evaluate<string[]>(SCREENS)
    expect(screens.length).toBeGreaterThan(20)
    const seen = (text: string) => screens.findIndex((screen) => screen.includes(text))
    const scenes = [
      "$ dex",
      "type to search",
      "❯ high water",
      "It fails as it did last night",
      "$ dex why",
      "Decided",
    ].map(seen)
    expect(scenes.every((second) => second >= 0)).toBe(true)
    expect(scenes).toEqual(scenes.toSorted((a, b) => a - b))
    expect(screens[seen("Decided")]).not.toContain("type to search")
  })
})

/** What an animated drawing shows in each of its seconds. */
const SCREENS = `(() => {
  const all = document.getAnimations()
  const seconds = all[0].effect.getTiming().duration / 1000
  return Array.from({ length: Math.floor(seconds) }, (_, second) => {
    for (const one of all) {
      one.pause()
      one.currentTime = second * 1000
    }
    return [...document.querySelectorAll("text")]
      .filter((text) => getComputedStyle(text).visibility === "visible")
      .map((text) => text.textContent)
      .join(" ")
  })
})()`

/** The size in a PNG's header. */
function sizeOf(path: string): { width: number; height: number } {
  const bytes = readFileSync(path)
  expect(bytes.subarray(1, 4).toString()).toBe("PNG")
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

test("every picture in docs is one that the script takes, in its size", () => {
  const pictures = globSync("docs/**/*.{png,jpg,gif,webp}", { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"))
  expect(pictures.toSorted()).toEqual(PICTURES.map((name) => `docs/${name}`).toSorted())
  for (const picture of pictures) expect([picture, sizeOf(join(ROOT, picture))]).toEqual([picture, SIZE])
})

/** What each picture must show of a history that dex has learned from. */
const MUST_SHOW: Record<string, RegExp[]> = {
  "view-home.png": [/What happened lately/, /\d conversations/, /Tokens by day/, /Newest/, /Left open/],
  "view-find.png": [/“high water”/, /\d results, best first/, /why it ?is here/, /A file it touched/],
  "view-read.png": [/Outline/, /Facts/, /tokens at list price/, /Files changed \d/, /Find in this conversation/],
  "view-usage.png": [/\$\d+\.\d\d.{1,3}[\d.]+ ?M tokens/, /\$3\.00/, /claude-sonnet/, /By month/],
}
const MUST_NOT_SHOW = [/learning/i, /Ask again/, /\$0\.00/, /\b0 tokens/, /No tokens are known/]

const canReadPictures = spawnSync("tesseract", ["--version"]).error === undefined
if (!canReadPictures)
  console.warn("NOT RUN: the words in the pictures of the view are not read: apt-get install tesseract-ocr")

/** The words in a picture, in lines. They may be anywhere in it: `--psm 11`. */
function wordsIn(picture: string): string {
  return execFileSync("tesseract", [picture, "-", "--psm", "11"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  })
}

test.skipIf(!canReadPictures).each(PICTURES)(
  "the words in docs/%s come from a history that dex has learned from",
  (name) => {
    const words = wordsIn(join(ROOT, "docs", name))
    for (const word of MUST_SHOW[name]!) expect(words).toMatch(word)
    for (const word of MUST_NOT_SHOW) expect(words).not.toMatch(word)
  },
)

looked("the pictures of the view", () => {
  const home = sharedTempDir()
  beforeAll(async () => {
    makeDemo(home)
    await syncHome(home)
  })

  test("are not taken before dex has learned from everything, and are all taken afterwards", async () => {
    const folder = tempDir()
    for (const end of ["", "-wal", "-shm"]) rmSync(join(home, ".dex", `${KNOWLEDGE_FILE}${end}`), { force: true })
    await expect(takePictures(home, folder)).rejects.toThrow("has not learned")
    expect(readdirSync(folder)).toEqual([])
    await warmDex(home, ["decisions", "--all"])
    await takePictures(home, folder)
    expect(readdirSync(folder).toSorted()).toEqual(PICTURES.toSorted())
    for (const name of PICTURES) expect(sizeOf(join(folder, name))).toEqual(SIZE)
  })
})
