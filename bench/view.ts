import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { type Browser, chromium, type Page } from "playwright-core"
import { createDex } from "../src/app/dex.ts"
import { formatRef } from "../src/core/ref.ts"
import { list } from "../src/tools/list/list.ts"
import { search } from "../src/tools/search/search.ts"
import { show } from "../src/tools/show/show.ts"
import { usage } from "../src/tools/usage/usage.ts"
import { runToolForPage } from "../src/view/page.ts"
import { DEX } from "../test/support/dex.ts"
import { startView } from "../test/view/process.ts"
import { homeWith, time } from "./measure.ts"
import { median, type Row } from "./report.ts"

const RUNS = 7
const IDLE_SECONDS = 60
/** The time after which everything that opening a page started has ended, in seconds. */
const SETTLED_SECONDS = 10
const SCREENS = 40
const LIVE_RUNS = 5
const MESSAGES = 1_000_000
const LONGEST = 10_000

const SEEN = `new Promise((done) => {
  const tell = () => {
    const [navigation] = performance.getEntriesByType("navigation")
    const [paint] = performance.getEntriesByName("first-contentful-paint")
    if (paint) done({ first: navigation.responseStart - navigation.requestStart, paint: paint.startTime })
    else requestAnimationFrame(tell)
  }
  tell()
})`

/** The pages of dex view in a real browser, in homes that have a history, otherwise in a generated one. */
export async function benchView(homes: string[]): Promise<Row[]> {
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
  const rows: Row[] = []
  for (const home of homes.length > 0 ? homes : [madeHome()]) rows.push(...(await measure(home, browser)))
  await browser.close()
  return rows
}

function madeHome(): string {
  const home = homeWith(MESSAGES, { messages: LONGEST, messagesPerConversation: LONGEST, seed: 12 })
  time([DEX, "usage"], { HOME: home }) // learns
  return home
}

async function measure(home: string, browser: Browser): Promise<Row[]> {
  const dex = createDex({ env: { HOME: home }, cwd: home, version: "0" })
  const { rows: conversations } = await (await dex.store()).list({ limit: 100_000, offset: 0 })
  const byLength = conversations.toSorted((a, b) => b.message_count - a.message_count)
  const words = "the server"
  const tools = new Map<string, [path: string, tool: () => Promise<unknown>]>()
  // The longest one, and a typical one.
  for (const { ref, message_count } of [byLength[0]!, byLength[Math.floor(byLength.length / 2)]!]) {
    const id = formatRef(ref)
    tools.set(`a conversation of ${message_count}`, [
      `c/${encodeURIComponent(id)}`,
      () => runToolForPage(dex, show, { ids: [id], format: "outline" }),
    ])
  }
  tools.set("find", [
    `find?q=${encodeURIComponent(words)}`,
    () => runToolForPage(dex, search, { query: words, limit: 20, explain: true }),
  ])
  tools.set("home", ["", () => runToolForPage(dex, list, { limit: 10 })])
  tools.set("usage", ["usage", () => runToolForPage(dex, usage, {})])
  const view = await startView(home)
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
  await page.goto(view.address)
  await page.waitForURL(/\/$/)
  const base = page.url()
  const rows: Row[] = []
  for (const [what, [path, tool]] of tools) {
    const [own, first, paint]: [number[], number[], number[]] = [[], [], []]
    for (let run = 0; run < RUNS; run++) {
      const started = performance.now()
      await tool()
      own.push(performance.now() - started)
      await page.goto(`${base}${path}`)
      const seen = (await page.evaluate(SEEN)) as { first: number; paint: number }
      first.push(seen.first)
      paint.push(seen.paint)
      // Wait for what loads late before the next page is opened.
      await page.locator("[data-late]").first().waitFor({ state: "detached" })
    }
    const goal = median(own) * 1.5 + 30
    rows.push({
      what: `${what}: first byte`,
      measured: `${median(first).toFixed(0)}, the first time ${first[0]!.toFixed(0)} ms`,
      floor: `${median(own).toFixed(0)} ms, the tool`,
      goal: `≤ ${goal.toFixed(0)} ms`,
      ok: median(first) <= goal,
    })
    rows.push({
      what: `${what}: first paint`,
      measured: `${median(paint).toFixed(0)}, the first time ${paint[0]!.toFixed(0)}, longest ${Math.max(...paint).toFixed(0)} ms`,
      floor: "",
      goal: "< 400 ms",
      ok: median(paint) < 400,
    })
  }
  const longest = `${base}c/${encodeURIComponent(formatRef(byLength[0]!.ref))}`
  rows.push(...(await scrolling(page, longest)))
  rows.push(await live(page, base, home))
  const memory = memoryOf(view.pid)
  rows.push({ what: "memory of the server", measured: `${memory} MB`, floor: "", goal: "< 200 MB", ok: memory < 200 })
  await page.goto(longest)
  await pause(SETTLED_SECONDS * 1_000)
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
  await page.close()
  await view.stop()
  dex.close()
  return rows
}

/** How long it takes until a page shows a message that an agent wrote. */
async function live(page: Page, base: string, home: string): Promise<Row> {
  const id = "77777777-7777-4777-8777-777777777777"
  const folder = join(home, ".claude", "projects", "-code-live")
  const file = join(folder, `${id}.jsonl`)
  mkdirSync(folder, { recursive: true })
  const line = (i: number, text: string) =>
    `${JSON.stringify({ type: "user", uuid: `live-${process.pid}-${i}`, parentUuid: null, isSidechain: false, sessionId: id, cwd: "/code/live", version: "2.1.197", timestamp: new Date().toISOString(), message: { role: "user", content: text } })}\n`
  writeFileSync(file, line(0, "Follow me"))
  await page.goto(`${base}find`)
  await page.getByText("Follow me").first().waitFor({ timeout: 60_000 })
  await page.goto(`${base}c/claude_code:${id}`)
  await page.locator("#m1").waitFor()
  const times: number[] = []
  for (let i = 1; i <= LIVE_RUNS; i++) {
    await pause(1_500)
    const text = `Message ${process.pid} ${i} of a running agent`
    const started = performance.now()
    appendFileSync(file, line(i, text))
    await page.locator(".messages").getByText(text).waitFor({ timeout: 60_000 })
    times.push(performance.now() - started)
  }
  return {
    what: "a message that was just written is on the page after",
    measured: `${median(times).toFixed(0)}, longest ${Math.max(...times).toFixed(0)} ms`,
    floor: "",
    goal: "< 2,000 ms",
    ok: Math.max(...times) < 2_000,
  }
}

/** Scrolls to the end of the longest conversation and back, a screen at a time, and counts the screens that show nothing. */
async function scrolling(page: Page, address: string): Promise<Row[]> {
  await page.goto(address)
  while ((await page.locator("a.more[rel=next]").count()) > 0) {
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    await pause(50)
  }
  let blank = 0
  for (let i = SCREENS; i >= 0; i--) {
    await page.evaluate(`scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * ${i / SCREENS})`)
    const screen = await page.screenshot({ clip: { x: 320, y: 80, width: 760, height: 800 } })
    // A picture of nothing compresses to almost nothing.
    if (screen.length >= 4_000) continue
    blank++
    writeFileSync(join(tmpdir(), `dex-bench-blank-${i}.png`), screen)
  }
  const heap = (await page.evaluate("performance.memory.usedJSHeapSize / 1e6")) as number
  const parts = (await page.evaluate("document.querySelectorAll('.part').length")) as number
  const before = tabMemory()
  await (await page.context().newCDPSession(page)).send("HeapProfiler.collectGarbage")
  await pause(2_000)
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
      measured: `${tab} MB, scripts ${heap.toFixed(0)}; before its garbage was collected ${before}`,
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

/** The largest process of the browser that draws a page: its own memory, without shared memory. */
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
