import { join } from "node:path"
import { chromium, type Page } from "playwright-core"
import { createDex } from "../src/app/dex.ts"
import { needsLearning } from "../src/learn/outdated.ts"
import { environment } from "../test/support/dex.ts"
import { startView } from "../test/view/process.ts"

export const SIZE = { width: 1280, height: 800 }

/** Each picture's name, and its page. */
const PAGES: Record<string, (base: string, page: Page) => Promise<string>> = {
  home: async () => "",
  find: async () => "find?q=high+water",
  read: async (base, page) => {
    await page.goto(`${base}find`)
    const address = await page.locator(".row a.title").nth(1).getAttribute("href")
    return address!.split("/").slice(2).join("/")
  },
  usage: async () => "usage?by=month",
}

export const PICTURES = Object.keys(PAGES).map((name) => `view-${name}.png`)

/** Takes a picture of each page of the built program, in Chromium. Throws if dex has not learned everything in that home. */
export async function takePictures(home: string, folder: string): Promise<void> {
  if (!(await hasLearned(home)))
    throw new Error(`dex has not learned from all of ${home} yet: run \`dex decisions\` there first.`)
  const browser = await chromium.launch({
    executablePath: process.env.DEX_TEST_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
  })
  try {
    const view = await startView(home)
    try {
      const page = await browser.newPage({ viewport: SIZE, colorScheme: "light" })
      await page.goto(view.address)
      await page.waitForURL(/\/$/)
      const base = page.url()
      for (const [name, pathOf] of Object.entries(PAGES)) {
        await page.goto(`${base}${await pathOf(base, page)}`)
        await page.locator("main h1").waitFor()
        // Wait until everything that loads later has arrived.
        await page.locator("[data-late], [data-part]:not(a)").first().waitFor({ state: "detached" })
        if ((await page.locator(".learning").count()) > 0) throw new Error(`The page ${name} is still being filled.`)
        await page.screenshot({ path: join(folder, `view-${name}.png`) })
      }
    } finally {
      await view.stop()
    }
  } finally {
    await browser.close()
  }
}

async function hasLearned(home: string): Promise<boolean> {
  const dex = createDex({ env: environment(home, {}), cwd: home, version: "0.0.0" })
  try {
    return !(await needsLearning(await dex.store(), await dex.knowledge()))
  } finally {
    dex.close()
  }
}
