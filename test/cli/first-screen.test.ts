import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { tryLock } from "../../src/store/sqlite/lock.ts"
import { dex, startDex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const SESSIONS = 30
/** Long enough that the first sync does not read all of it at once. */
const LONG = "The second request presents a token that was rotated by the first. ".repeat(6_000)

/** Session 0 is the newest; each further one is a day older. */
function manySessions(home: string): void {
  for (let n = 0; n < SESSIONS; n++)
    claudeSession(home, {
      id: `${String(n).padStart(8, "0")}-1111-4111-8111-111111111111`,
      start: new Date(Date.parse("2026-11-10T10:00:00Z") - n * 86_400_000).toISOString(),
      title: `Session number ${n} of the token race`,
      turns: [{ user: `What of wombat${n}word?` }, { assistant: LONG }],
    })
}

const total = async (home: string) => JSON.parse((await warmDex(home, ["list", "--json"])).stdout).total as number

/** The processes that were started in this home and still run. */
function running(home: string): string[] {
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`HOME=${home}`)
      } catch {
        return false // it has ended, or is somebody else's
      }
    })
}

describe.skipIf(process.platform !== "linux")("the first screen of a long history", () => {
  test("shows the newest at once, and the rest is read by a process that ends with it", async () => {
    const home = tempDir()
    manySessions(home)
    const first = await dex(home, [], { DEX_FIRST_MS: "0" })
    expect(first.code).toBe(0)
    const [, left] = /(\d+) of 30 transcripts are not read yet\. dex now reads them in the background/.exec(
      first.stdout,
    )!
    expect(Number(left)).toBeGreaterThan(10)
    expect(first.stdout).toMatch(/ 1 .*Session number 0 [\s\S]* 2 .*Session number 1 [\s\S]* 3 .*Session number 2 /)
    expect(first.stdout).not.toContain("`dex sync`")
    await expect.poll(() => running(home), { interval: 200 }).toEqual([])
    expect(await total(home)).toBe(SESSIONS)
    const found = await warmDex(home, ["search", "wombat29word"])
    expect(found.stdout).toContain("Session number 29")
    expect(found.stderr).not.toContain("so far")
  })

  test("Ctrl-C leaves nothing running, and says what is not read", async () => {
    const home = tempDir()
    manySessions(home)
    const child = startDex(home, [], undefined, { DEX_FIRST_MS: "600000" })
    let printed = ""
    child.stdout!.on("data", (data) => {
      printed += data
      if (/the memory that/.test(printed)) child.kill("SIGINT")
    })
    await new Promise((resolve) => child.on("close", resolve))
    expect(printed.replace(/\s+/g, " ")).toContain(
      "Stopped. Everything read so far is kept. Not everything is read yet: `dex sync` continues",
    )
    expect(printed).not.toContain("background")
    expect(running(home)).toEqual([])
    expect(await total(home)).toBeLessThan(SESSIONS)
  })

  test("does not wait for very many short conversations either", async () => {
    const home = tempDir()
    for (let n = 0; n < 200; n++)
      claudeSession(home, {
        id: `${String(n).padStart(8, "0")}-1111-4111-8111-111111111111`,
        start: "2026-11-10T10:00:00Z",
        turns: [{ user: `What of number ${n}?`, assistant: "Nothing." }],
      })
    mkdirSync(join(home, ".pi", "agent", "sessions"), { recursive: true })
    const first = await dex(home, [], { DEX_FIRST_MS: "0" })
    expect(first.stdout).toMatch(/^Found, but not read yet: pi\.$/m)
    expect(first.stdout).toMatch(/1\d\d of 200 transcripts are not read yet\. dex now reads them in the background/)
    await expect.poll(() => running(home), { interval: 200 }).toEqual([])
    expect(await total(home)).toBe(200)
  })

  test("a small history is read completely, even after the deadline", async () => {
    const home = tempDir()
    smallHome(home)
    const first = await dex(home, [], { DEX_FIRST_MS: "0" })
    expect(first.stdout).toContain("2 conversations (and 1 automated)")
    expect(first.stdout).not.toContain("background")
    expect(running(home)).toEqual([])
  })
})

test("during a sync every answer says so, and doctor shows since when and how far", async () => {
  const home = await synced()
  const store = openStore(join(home, ".dex", "history.db"))
  await store.saveProgress({ done: 3, total: 9, at: Date.parse("2026-11-15T08:30:00Z") })
  store.close()
  const commandLines = [
    ["list"],
    ["search", "token"],
    ["sources"],
    ["decisions", "--all"],
    ["fix", "token already used"],
  ]
  for (const words of commandLines)
    expect((await warmDex(home, words)).stderr).toContain("3 of 9 transcripts read so far. `dex sync` reads the rest.")
  const other = tryLock(join(home, ".dex", "sync.lock"))!
  for (const words of commandLines)
    expect((await warmDex(home, words)).stderr).toContain("3 of 9 transcripts read so far. A sync is reading the rest.")
  expect((await warmDex(home, ["doctor"])).stdout).toContain(
    "A sync has been running since 2026-11-15 08:30 UTC: 3 of 9 transcripts read.",
  )
  expect((await warmDex(home, [])).stdout).toContain(
    "Another dex process is reading right now. 3 of 9 transcripts read so far.",
  )
  other.release()
})

test("doctor checks an index during a sync, and does not call it damaged", async () => {
  const home = await synced()
  const index = join(home, ".dex", readdirSync(join(home, ".dex")).find((name) => /^index-\d+\.db$/.test(name))!)
  const writer = openSqlite(index)
  writer.exec("begin immediate")
  const { stdout } = await warmDex(home, ["doctor"])
  writer.exec("rollback")
  writer.close()
  expect(stdout).toContain("index: healthy and up to date")
  expect(readdirSync(join(home, ".dex")).filter((name) => name.endsWith(".damaged"))).toEqual([])
  expect((await warmDex(home, ["doctor"])).stdout).toContain("index: healthy and up to date")
})
