import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { chromium } from "playwright-core"
import { makeDemo } from "../demo/history.ts"
import { syncHome } from "../test/support/warm.ts"
import { startView } from "../test/view/process.ts"

// docs/view-*.png: pages of the built program over the demo history, in Debian's Chromium.
//   npm run pictures

const home = mkdtempSync(join(tmpdir(), "dex-pictures-"))
makeDemo(home)
await syncHome(home)
const PAGES = {
  home: "",
  find: "find?q=high+water",
  read: "",
  usage: "usage?by=month",
}
const browser = await chromium.launch({
  executablePath: process.env.DEX_TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
})
const view = await startView(home)
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "light" })
  await page.goto(view.address)
  const base = view.address.replace(/enter\?.*/, "")
  const newest = await page.goto(`${base}find`).then(() => page.locator(".row a.title").nth(1).getAttribute("href"))
  PAGES.read = newest?.split("/").slice(2).join("/") ?? ""
  for (const [name, path] of Object.entries(PAGES)) {
    await page.goto(`${base}${path}`)
    await page.locator("main h1").waitFor()
    await page.locator("[data-part]:not(a)").first().waitFor({ state: "detached" })
    await page.screenshot({ path: fileURLToPath(new URL(`../docs/view-${name}.png`, import.meta.url)) })
  }
} finally {
  await view.stop()
  await browser.close()
  rmSync(home, { recursive: true, force: true })
}
process.exit(0)
