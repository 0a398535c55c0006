import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { makeDemo } from "../../demo/history.ts"
import { KNOWLEDGE_FILE, SPENDING_FILE } from "../../src/core/formats.ts"
import { tryLock } from "../../src/store/sqlite/lock.ts"
import { serveView } from "../../src/view/serve-view.ts"
import { environment } from "../support/dex.ts"
import { sharedTempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { chromiumHere, useBrowser } from "./browser.ts"
import { served } from "./served.ts"

const look = useBrowser()
const looked = chromiumHere === undefined ? describe.skip : describe

const home = sharedTempDir()
beforeAll(async () => {
  makeDemo(home)
  await syncHome(home)
})

/** The home was synced by a dex that has not recorded the spending, and nothing was learned from it. */
function unlearn(...files: string[]): void {
  for (const file of files)
    for (const end of ["", "-wal", "-shm"]) rmSync(join(home, ".dex", `${file}${end}`), { force: true })
}

/** Whether the page says that dex is learning, and whether it shows zeros, which it must not. */
async function learningOn(page: Page): Promise<{ learning: number; zeros: boolean }> {
  const text = await page.locator("main").innerText()
  return { learning: await page.locator(".learning").count(), zeros: /\$0\.00|\b0 tokens/.test(text) }
}

/** Waits until the page shows what was learned, and checks that it was not reloaded. */
async function filled(page: Page, figures: string): Promise<void> {
  await page.locator(figures).first().waitFor()
  // Parts of a page are loaded one after the other, and each may still say that dex is learning.
  await expect.poll(() => learningOn(page)).toEqual({ learning: 0, zeros: false })
  expect(await page.evaluate("globalThis.isSamePage")).toBe(true)
}

const mark = (page: Page) => page.evaluate("globalThis.isSamePage = true")

looked("a page that is opened before everything was learned", () => {
  test.each([
    ["home", "", ".heat a, svg a"],
    ["usage", "usage?by=month", "main table td"],
  ])("%s is updated while another dex learns, without a reload", async (_, path, figures) => {
    // Another dex is learning: it has the lock, and has not written anything yet.
    let lock: ReturnType<typeof tryLock>
    await expect
      .poll(() => {
        lock ??= tryLock(join(home, ".dex", "sync.lock"))
        return lock !== undefined
      })
      .toBe(true)
    unlearn(KNOWLEDGE_FILE, SPENDING_FILE)
    const view = await served(home, () => {})
    const { page } = await look(view.enter(path))
    await mark(page)
    await page
      .locator(".learning [data-learned]", { hasText: /\(0 of \d+\)/ })
      .first()
      .waitFor()
    expect((await learningOn(page)).zeros).toBe(false)
    lock!.release()
    await warmDex(home, ["sync"])
    await filled(page, figures)
  })

  test("after a sync alone, home shows the year and the spending at once", async () => {
    unlearn(KNOWLEDGE_FILE)
    const view = await served(home, () => {})
    const { page } = await look(view.enter(""))
    await page.locator(".heat a, svg a").first().waitFor()
    expect(await learningOn(page)).toEqual({ learning: 0, zeros: false })
    expect(existsSync(join(home, ".dex", KNOWLEDGE_FILE))).toBe(false)
  })

  test("the page is updated when the view itself has learned, however briefly it was open", async () => {
    unlearn(KNOWLEDGE_FILE, SPENDING_FILE)
    const env = environment(home, {})
    const view = await serveView({ env, cwd: home, version: "0.0.0", log: () => {}, idleMs: 600_000, learnWithinMs: 0 })
    onTestFinished(() => view.stop())
    const { page } = await look(view.enter("usage?by=month"))
    await mark(page)
    await filled(page, "main table td")
  })
})
