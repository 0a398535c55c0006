import { afterEach, expect, test, vi } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { createFreshness } from "../../src/serve/mcp/fresh.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

afterEach(() => void vi.restoreAllMocks())

test("a server whose clock was set back still looks for new messages", async () => {
  const home = tempDir()
  const start = { env: { HOME: home, PATH: process.env.PATH }, cwd: home, version: "0.0.0" }
  const fresh = createFreshness(start, () => {})
  const kept = async () => {
    const dex = createDex(start)
    const { total } = await (await dex.store()).list({ limit: 10, offset: 0 })
    dex.close()
    return total
  }
  claudeSession(home, { id: "1".repeat(8), start: "2026-11-03T10:00:00Z", turns: [{ user: "before" }] })
  await fresh.readNewMessages(50_000)
  expect(await kept()).toBe(1)
  const real = Date.now
  vi.spyOn(Date, "now").mockImplementation(() => real() - 3_600_000)
  claudeSession(home, { id: "2".repeat(8), start: "2026-11-03T10:00:00Z", turns: [{ user: "after" }] })
  await fresh.readNewMessages(50_000)
  expect(await kept()).toBe(2)
})
