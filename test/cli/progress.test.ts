import { spawn } from "node:child_process"
import { once } from "node:events"
import { beforeEach, expect, onTestFinished, test, vi } from "vitest"
import { progressView } from "../../src/cli/progress.ts"
import type { SyncProgress } from "../../src/ingest/sync-types.ts"
import type { Terminal } from "../../src/render/terminal.ts"

const START = Date.parse("2026-03-01T12:00:00Z")
const progress = (done: number, more: Partial<SyncProgress> = {}): SyncProgress => ({
  phase: "reading",
  done,
  total: 2_000,
  bytes: done * 1e4,
  bytesTotal: 2e7,
  ...more,
})

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: START })
  onTestFinished(() => void vi.useRealTimers())
})

function viewed(interactive: boolean) {
  const written: string[] = []
  const stream = { write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream
  const view = progressView(stream, { interactive, color: false, columns: 70 } as Terminal)
  const at = (ms: number, one: SyncProgress) => {
    vi.setSystemTime(START + ms)
    view.show(one)
    return written.splice(0).join("")
  }
  const stop = () => {
    view.stop()
    return written.splice(0).join("")
  }
  return { at, stop }
}

test("a bar appears after a moment, is drawn ten times a second, and leaves nothing behind", () => {
  const listeners = process.listenerCount("exit")
  const { at, stop } = viewed(true)
  expect(at(399, progress(100))).toBe("")
  expect(at(1_000, progress(1_000))).toBe(
    "\x1b[?25l\x1b[?7l\rReading █████░░░░░ 1,000 of 2,000 · 10 MB/s · 1 s left\x1b[K",
  )
  expect(at(1_050, progress(1_100))).toBe("")
  expect(at(1_500, progress(1_200))).toContain("Reading ██████░░░░ 1,200 of 2,000 · 8.0 MB/s")
  const asking = { phase: "asking", bytes: 1, bytesTotal: 4, total: 4, tokens: 1_234 } as const
  expect(at(1_510, progress(1, asking))).toBe("\rAsking ███░░░░░░░ 1 of 4 · 1,234 tokens spent · 1 s left\x1b[K")
  expect(stop()).toBe("\r\x1b[K\x1b[?25h\x1b[?7h")
  expect(stop()).toBe("")
  expect(process.listenerCount("exit")).toBe(listeners)
})

test("a pipe gets a line every two seconds", () => {
  const { at, stop } = viewed(false)
  expect(at(1_999, progress(100))).toBe("")
  expect(at(2_000, progress(1_000))).toBe("reading 1,000 of 2,000 transcripts\n")
  expect(at(2_100, progress(1_100)) + stop()).toBe("")
})

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s ends a program that shows a bar, and restores the cursor",
  async (signal) => {
    const file = new URL("../../src/cli/progress.ts", import.meta.url).href
    const code = `
    import { progressView } from ${JSON.stringify(file)}
    const { now } = Date
    const view = progressView(process.stdout, { interactive: true, columns: 80 })
    Date.now = () => now() + 1_000
    view.show({ phase: "reading", done: 1, total: 2, bytes: 1, bytesTotal: 2 })
    setInterval(() => {}, 1_000)`
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] })
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      if (text.includes("1 of 2")) child.kill(signal)
    })
    await once(child, "close")
    expect(child.signalCode).toBe(signal)
    expect(text.endsWith("\x1b[?25h\x1b[?7h")).toBe(true)
  },
)
