import { utimesSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { loadConnectors } from "../../src/agents/connectors.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { tryLock } from "../../src/store/sqlite/lock.ts"
import { startDex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const LATER = "7e7e7e7e-1111-4111-8111-111111111111"

/** A synced home, then a second sync that is running, then a conversation that this sync may have missed. */
async function besideAnother() {
  const home = tempDir()
  smallHome(home)
  expect((await warmDex(home, ["sync"])).code).toBe(0)
  const other = tryLock(join(home, ".dex", "sync.lock"))!
  const turns = [{ user: "Where is the walrusword kept?", assistant: "In the cellar." }]
  claudeSession(home, { id: LATER, start: "2026-10-05T10:00:00Z", turns })
  return { home, other }
}

test("a sync waits for another one to end, and reads what that one missed", async () => {
  const { home, other } = await besideAnother()
  const child = startDex(home, ["sync"])
  let printed = ""
  let notes = ""
  child.stdout!.on("data", (chunk) => (notes += chunk))
  const ended = new Promise((resolve) => child.on("exit", resolve))
  await new Promise<void>((resolve) =>
    child.stderr!.on("data", (chunk) => {
      printed += chunk
      if (/another dex process reads/.test(printed)) resolve()
    }),
  )
  other.release()
  expect(await ended).toBe(0)
  expect(notes).toMatch(/Read 1 transcript of 4/)
  expect((await warmDex(home, ["search", "walrusword"])).stdout).toContain(LATER)
})

test("a sync that has no time to wait ends, and says so", async () => {
  const { home, other } = await besideAnother()
  for (const args of [["--no-wait"], ["--max-seconds", "1"]]) {
    const { code, stdout, stderr } = await warmDex(home, ["sync", ...args])
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" })
    expect(stderr).toMatch(/Another dex process is syncing right now/)
  }
  other.release()
})

/** How much of a home counts as read while a sync is stopped after its first transcript. */
async function readSoFar(home: string) {
  const dir = join(home, ".dex")
  const store = openStore(join(dir, "history.db"))
  const index = openIndex(join(dir, "index.db"))
  const machine = { home, env: {}, platform: process.platform }
  const paths = { dir, history: join(dir, "history.db"), lock: join(dir, "sync.lock") }
  const { connectors } = await loadConnectors()
  try {
    expect(
      await syncHistory({ store, index, connectors, machine, home: paths }, { deadline: Date.now() }),
    ).toMatchObject({ complete: false, read: 1 })
    return await store.progress()
  } finally {
    store.close()
    index.close()
  }
}

test("transcripts that were read before do not count as unread while they are read again", async () => {
  const home = tempDir()
  const session = (n: number) =>
    claudeSession(home, {
      id: `${n}0000000-1111-4111-8111-111111111111`,
      start: "2026-10-05T10:00:00Z",
      turns: [{ user: "What of it?", assistant: "Nothing." }],
    })
  const paths = [1, 2, 3].map(session)
  expect((await warmDex(home, ["sync"])).code).toBe(0)
  for (const path of paths) utimesSync(path, 1_700_000_000, 1_700_000_000)
  expect(await readSoFar(home)).toMatchObject({ done: 3, total: 3 })
  expect((await warmDex(home, ["list"])).stderr).not.toContain("read so far")
  for (const n of [4, 5]) session(n)
  expect(await readSoFar(home)).toMatchObject({ done: 4, total: 5 })
  expect((await warmDex(home, ["list"])).stderr).toContain("4 of 5 transcripts read so far")
})
