// npm run bench:view [-- home …]: the pages of dex view in a real browser, in homes that have a history.
import { readdirSync, readFileSync } from "node:fs"
import { loadavg } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { type Browser, chromium } from "playwright-core"
import { createDex } from "../src/app/dex.ts"
import { list } from "../src/tools/list/list.ts"
import { search } from "../src/tools/search/search.ts"
import { show } from "../src/tools/show/show.ts"
import { usage } from "../src/tools/usage/usage.ts"
import { askTool } from "../src/view/page.ts"
import { startView } from "../test/view/process.ts"
import { machine, median, printTable, type Row } from "./measure.ts"

const RUNS = 7
const IDLE_SECONDS = 30
const SCREENS = 40

const SEEN = `new Promise((done) => {
  const tell = () => {
    const [navigation] = performance.getEntriesByType("navigation")
    const [paint] = performance.getEntriesByName("first-contentful-paint")
    if (paint) done({ first: navigation.responseStart - navigation.requestStart, paint: paint.startTime })
    else requestAnimationFrame(tell)
  }
  tell()
})`

console.log(machine())
const browser = await chromium.launch({
  executablePath: process.env.DEX_TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--enable-precise-memory-info",
  ],
})
for (const home of process.argv.slice(2)) await measure(home, browser)
await browser.close()

async function measure(home: string, browser: Browser): Promise<void> {
  const dex = createDex({ env: { HOME: home }, cwd: home, version: "0" })
  const { rows: longest } = await (await dex.store()).list({ limit: 100_000, offset: 0 })
  const ref = longest.reduce((a, b) => (b.message_count > a.message_count ? b : a)).ref
  const id = `${ref.source}:${ref.id}`
  const words = "the server"
  const tools: Record<string, () => Promise<unknown>> = {
    [`c/${encodeURIComponent(id)}`]: () => askTool(dex, show, { ids: [id], format: "outline" }),
    [`find?q=${encodeURIComponent(words)}`]: () => askTool(dex, search, { query: words, limit: 20 }),
    "": () => askTool(dex, list, { limit: 10 }),
    usage: () => askTool(dex, usage, {}),
  }
  const view = await startView(home)
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
  await page.goto(view.address)
  const base = view.address.replace(/enter\?.*/, "")
  const rows: Row[] = []
  for (const [path, tool] of Object.entries(tools)) {
    const [own, first, paint]: [number[], number[], number[]] = [[], [], []]
    for (let run = 0; run < RUNS; run++) {
      const started = performance.now()
      await tool()
      own.push(performance.now() - started)
      await page.goto(`${base}${path}`)
      const seen = (await page.evaluate(SEEN)) as { first: number; paint: number }
      first.push(seen.first)
      paint.push(seen.paint)
    }
    const goal = median(own) * 1.5 + 30
    rows.push({
      what: `/${path.slice(0, 30)}: first byte`,
      measured: `${median(first).toFixed(0)} ms`,
      floor: `${median(own).toFixed(0)} ms, the tool`,
      goal: `≤ ${goal.toFixed(0)} ms`,
      ok: median(first) <= goal,
    })
    rows.push({
      what: `/${path.slice(0, 30)}: first paint`,
      measured: `${median(paint).toFixed(0)}, longest ${Math.max(...paint).toFixed(0)} ms`,
      floor: "",
      goal: "< 400 ms",
      ok: median(paint) < 400,
    })
  }
  rows.push(...(await scrolling(page, `${base}c/${encodeURIComponent(id)}`)))
  const memory = memoryOf(view.pid)
  rows.push({ what: "memory of the server", measured: `${memory} MB`, floor: "", goal: "< 200 MB", ok: memory < 200 })
  await page.goto(`${base}c/${encodeURIComponent(id)}`)
  await pause(3_000)
  const before = ticksOf(view.pid)
  await pause(IDLE_SECONDS * 1_000)
  const share = (ticksOf(view.pid) - before) / IDLE_SECONDS // a tick is a hundredth of a second
  rows.push({
    what: `processor of the server, an idle page open, ${IDLE_SECONDS} s`,
    measured: `${share.toFixed(2)} %`,
    floor: "",
    goal: "< 0.1 %",
    ok: share < 0.1,
  })
  printTable(`${home}, load ${loadavg()[0]!.toFixed(1)}`, rows)
  await page.close()
  await view.stop()
  dex.close()
}

/** To the end of the longest conversation and back, a screen at a time: how many screens show nothing. */
async function scrolling(page: Awaited<ReturnType<Browser["newPage"]>>, address: string): Promise<Row[]> {
  await page.goto(address)
  for (let before = -1, now = 0; now !== before; ) {
    before = now
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    await pause(250)
    now = (await page.evaluate("document.querySelectorAll('.part').length")) as number
  }
  let blank = 0
  for (let i = SCREENS; i >= 0; i--) {
    await page.evaluate(`scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * ${i / SCREENS})`)
    const screen = await page.screenshot({ clip: { x: 320, y: 80, width: 760, height: 800 } })
    // A picture of nothing compresses to almost nothing.
    if (screen.length < 4_000) blank++
  }
  const heap = (await page.evaluate("performance.memory.usedJSHeapSize / 1e6")) as number
  const parts = (await page.evaluate("document.querySelectorAll('.part').length")) as number
  const tab = tabMemory()
  return [
    {
      what: `screens of ${SCREENS + 1} that are blank, ${parts} parts loaded`,
      measured: String(blank),
      floor: "",
      goal: "0",
      ok: blank === 0,
    },
    {
      what: "memory of the tab",
      measured: `${tab} MB, scripts ${heap.toFixed(0)}`,
      floor: "",
      goal: "< 300 MB",
      ok: tab < 300,
    },
  ]
}

function memoryOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))!
  return Math.round(Number(kilobytes) / 1024)
}

function ticksOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  return Number(fields[11]) + Number(fields[12])
}

/** The largest process of the browser that draws a page: its own memory, without what it shares. */
function tabMemory(): number {
  const found = readdirNumbers().flatMap((pid) => {
    try {
      if (!readFileSync(join("/proc", pid, "cmdline"), "utf8").includes("--type=renderer")) return []
      const rollup = readFileSync(join("/proc", pid, "smaps_rollup"), "utf8")
      return [Number(/^Private_Dirty:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) / 1024]
    } catch {
      return [] // it has ended
    }
  })
  return Math.round(Math.max(0, ...found))
}

function readdirNumbers(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name))
}
