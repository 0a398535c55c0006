import { join } from "node:path"
import { expect, test } from "vitest"
import { tryLock } from "../../src/store/sqlite/lock.ts"
import { dex, startDex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

const LATER = "7e7e7e7e-1111-4111-8111-111111111111"

/** A home that was synced, then another sync that runs, then a conversation that it may have come too early for. */
async function besideAnother() {
  const home = tempDir()
  smallHome(home)
  expect((await dex(home, ["sync"])).code).toBe(0)
  const other = tryLock(join(home, ".dex", "sync.lock"))!
  const turns = [{ user: "Where is the walrusword kept?", assistant: "In the cellar." }]
  claudeSession(home, { id: LATER, start: "2026-10-05T10:00:00Z", turns })
  return { home, other }
}

test("a sync beside another one waits for its end and reads what that one did not see", async () => {
  const { home, other } = await besideAnother()
  const child = startDex(home, ["sync"])
  let said = ""
  let told = ""
  child.stdout!.on("data", (chunk) => (told += chunk))
  const ended = new Promise((resolve) => child.on("exit", resolve))
  await new Promise<void>((resolve) =>
    child.stderr!.on("data", (chunk) => {
      said += chunk
      if (/another dex reads/.test(said)) resolve()
    }),
  )
  other.release()
  expect(await ended).toBe(0)
  expect(told).toMatch(/Read 1 transcript of 4/)
  expect((await dex(home, ["search", "walrusword"])).stdout).toContain(LATER)
})

test("one that has no time for that leaves, and says so", async () => {
  const { home, other } = await besideAnother()
  for (const args of [["--no-wait"], ["--max-seconds", "1"]]) {
    const { code, stdout, stderr } = await dex(home, ["sync", ...args])
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" })
    expect(stderr).toMatch(/Another dex is syncing right now/)
  }
  other.release()
})
