import { existsSync } from "node:fs"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { afterAll, beforeAll, onTestFinished } from "vitest"

const PROGRAMS = [
  process.env.DEX_TEST_CHROMIUM ?? "",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
]

/** The browser that is installed here. Undefined if there is none; then its tests are skipped. */
export const chromiumHere = PROGRAMS.find((path) => path !== "" && existsSync(path))
if (chromiumHere === undefined)
  console.warn("No Chromium is installed, so no page is looked at in a browser: apt-get install chromium")

// Turns off the browser's own background requests, which are not tested here.
const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
]

export type Looking = { page: Page; context: BrowserContext; requests: string[]; dialogs: string[]; errors: string[] }

/** One browser for all tests of a file; each look has a new profile. */
export function useBrowser(): (address: string, options?: Parameters<Browser["newContext"]>[0]) => Promise<Looking> {
  let browser: Browser | undefined
  beforeAll(async () => {
    if (chromiumHere) browser = await chromium.launch({ executablePath: chromiumHere, args: QUIET })
  })
  afterAll(async () => browser?.close())
  return async (address, options) => {
    const context = await browser!.newContext(options)
    context.setDefaultTimeout(90_000) // it ends what hangs, not what is slow on a busy machine
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const looking: Looking = { page, context, requests: [], dialogs: [], errors: [] }
    context.on("request", (request) => void (request.url() !== address && looking.requests.push(request.url())))
    page.on("dialog", (dialog) => {
      looking.dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    page.on("pageerror", (error) => void looking.errors.push(error.message))
    await page.goto(address)
    await page.waitForURL(({ pathname }) => pathname !== "/enter") // the entry page refreshes itself
    return looking
  }
}
