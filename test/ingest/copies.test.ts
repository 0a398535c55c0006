import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, utimesSync, watch, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout } from "node:timers/promises"
import { zstdCompressSync } from "node:zlib"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { loadConnectors } from "../../src/agents/connectors.ts"
import { syncWithThreads } from "../../src/ingest/sync-thread.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { openScratch, removeLeftovers, syncScratch } from "../../src/store/sqlite/scratch.ts"
import { DEX, dex, startDex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { smallDisk } from "../support/small-disk.ts"
import { tempDir } from "../support/temp.ts"

// A database that cannot be read in place is copied, unredacted: once, below dex's own folder, and no copy remains.

const AT = Date.parse("2026-11-03T10:00:00Z")

/**
 * OpenCode's database as in a copied or restored home: it has a log, but not the file that lets others read it, so that
 * it cannot be read in place.
 */
function unshareable(home: string, sessions: number, bytesEach: number): string {
  const live = join(tempDir(), "live.db")
  const db = new DatabaseSync(live)
  db.exec(`pragma journal_mode = wal; pragma wal_autocheckpoint = 0;
    create table project (id, worktree, vcs, name);
    create table session (id, project_id, directory, title, version, time_created, time_updated);
    create table message (id, session_id, time_created, time_updated, data);
    create table part (id, message_id, session_id, time_updated, data); begin`)
  for (let i = 0; i < sessions; i++) {
    db.prepare("insert into session values (?, 'p', '/code/api', ?, '1.2.0', ?, ?)").run(
      `ses_${i}`,
      `Bird ${i}`,
      AT,
      AT,
    )
    db.prepare("insert into message values (?, ?, ?, ?, ?)").run(`msg_${i}`, `ses_${i}`, AT, AT, '{"role":"user"}')
    const text = `zebrafinch number ${i} ${"sings and sings ".repeat(bytesEach / 16)}`
    db.prepare("insert into part values (?, ?, ?, ?, ?)").run(
      ...[`prt_${i}`, `msg_${i}`, `ses_${i}`, AT],
      JSON.stringify({ type: "text", text }),
    )
  }
  db.exec("commit")
  const path = join(home, ".local/share/opencode/opencode.db")
  mkdirSync(join(path, ".."), { recursive: true })
  for (const suffix of ["", "-wal"]) copyFileSync(live + suffix, path + suffix)
  db.close()
  return path
}

/** Everything below a folder, with the permissions of others. */
function below(folder: string): { path: string; others: number }[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true }).map((name) => {
    const path = join(folder, String(name))
    return { path, others: (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077 }
  })
}

/** Node would also store its compiled code in the temporary folder. */
const ownTemp = (dir: string) => ({ TMPDIR: dir, NODE_COMPILE_CACHE: join(tmpdir(), "compiled") })

const kept = async (home: string, env = {}) =>
  (JSON.parse((await dex(home, ["stats", "--json"], env)).stdout) as { total_conversations: number })
    .total_conversations

test.each([
  ["in this thread", 13, 1_000],
  ["in threads of its own", 13, 600_000],
])("a database of many conversations is copied once in a sync, and read %s", async (_, sessions, bytesEach) => {
  const home = tempDir()
  unshareable(home, sessions, bytesEach)
  const dir = join(home, ".dex")
  const scratch = syncScratch(dir)
  mkdirSync(scratch, { recursive: true, mode: 0o700 })
  const events: string[] = []
  const watcher = watch(scratch, (type, name) => void events.push(`${type} ${String(name).split("-")[0]}`))
  onTestFinished(() => watcher.close())
  const store = openStore(join(dir, "history.db"))
  const index = openIndex(join(dir, "index.db"))
  onTestFinished(() => {
    store.close()
    index.close()
  })
  const machine = { home, env: {}, platform: process.platform }
  const paths = { dir, history: join(dir, "history.db"), lock: join(dir, "sync.lock") }
  const deps = { store, index, connectors: (await loadConnectors()).connectors, machine, home: paths }
  const report = await syncWithThreads(deps, join(dir, "index.db"))
  expect(report).toMatchObject({ complete: true, read: sessions, added_messages: sessions, unreadable: [] })
  expect(existsSync(scratch)).toBe(false)
  // Made once, removed once; a second copy would add two events.
  await vi.waitFor(() => expect(events.filter((event) => event === "rename database")).toHaveLength(2), 100_000)
})

describe.skipIf(process.platform === "win32")("a sync that is stopped in the middle", () => {
  /** Returns a sync whose copy exists right now. If one ends too soon, starts another. */
  async function copying(home: string, temp: string) {
    const path = join(home, ".local/share/opencode/opencode.db")
    for (let at = 1_000; ; at++) {
      utimesSync(path, at, at)
      const child = startDex(home, ["sync"], DEX, ownTemp(temp))
      const ended = once(child, "exit")
      const isCopying = () => below(join(home, ".dex", "tmp")).some((file) => file.path.endsWith("opencode.db"))
      while (child.exitCode === null && !isCopying()) await setTimeout(5)
      if (child.exitCode === null) return { child, ended }
      expect(await ended).toEqual([0, null])
    }
  }

  test.each(["SIGKILL", "SIGTERM", "SIGHUP"] as const)(
    "by %s leaves something below dex's folder only, and the next sync removes it",
    async (signal) => {
      const [home, temp] = [tempDir(), tempDir()]
      unshareable(home, 40, 60_000)
      const { child, ended } = await copying(home, temp)
      child.kill(signal)
      await ended
      const left = below(join(home, ".dex", "tmp"))
      expect(left.length).toBeGreaterThan(0)
      expect(left.filter(({ others }) => others !== 0)).toEqual([])
      expect(readdirSync(temp)).toEqual([])
      expect((await dex(home, ["sync"], ownTemp(temp))).code).toBe(0)
      expect(below(join(home, ".dex", "tmp"))).toEqual([])
      expect(readdirSync(temp)).toEqual([])
      expect(await kept(home)).toBe(40)
    },
  )

  test("leaves no copy from which a forgotten conversation could be read", async () => {
    const [home, temp] = [tempDir(), tempDir()]
    unshareable(home, 40, 60_000)
    expect((await dex(home, ["sync"], ownTemp(temp))).code).toBe(0)
    const { child, ended } = await copying(home, temp)
    child.kill("SIGKILL")
    await ended
    expect(below(join(home, ".dex", "tmp")).length).toBeGreaterThan(0)
    expect((await dex(home, ["forget", "opencode:ses_7", "--yes"])).code).toBe(0)
    expect(below(join(home, ".dex", "tmp"))).toEqual([])
  })

  test("is not disturbed by another sync that starts while it is paused", async () => {
    const [home, temp] = [tempDir(), tempDir()]
    unshareable(home, 40, 60_000)
    const { child, ended } = await copying(home, temp)
    child.kill("SIGSTOP")
    const copies = below(join(home, ".dex", "tmp"))
    expect((await dex(home, ["sync", "--no-wait"], ownTemp(temp))).stderr).toMatch(/Another dex process is syncing/)
    expect(below(join(home, ".dex", "tmp"))).toEqual(copies)
    child.kill("SIGCONT")
    expect((await ended)[0]).toBe(0)
    expect(await kept(home)).toBe(40)
    expect(below(join(home, ".dex", "tmp"))).toEqual([])
  })
})

describe("files in dex's temporary folder", () => {
  test("stay while a process uses them, and are removed when it is gone", () => {
    const dir = tempDir()
    const mine = openScratch(dir)
    const dead = openScratch(dir)
    writeFileSync(join(dead.folder, "index.db"), "")
    const kept = join(dir, "tmp", "dead")
    // As a process that died leaves it: the folder, without anybody holding its lock.
    execFileSync("cp", ["-r", dead.folder, `${dead.folder}x`])
    dead.close()
    mkdirSync(kept)
    for (const folder of [mine.folder, `${dead.folder}x`]) utimesSync(folder, 1_000, 1_000)
    removeLeftovers(dir)
    expect(
      readdirSync(join(dir, "tmp"))
        .map((name) => join(dir, "tmp", name))
        .sort(),
    ).toEqual([kept, mine.folder].sort())
    mine.close()
    expect(readdirSync(join(dir, "tmp"))).toEqual(["dead"])
  })

  test("stay if they were just created, locked or not", () => {
    const dir = tempDir()
    mkdirSync(join(dir, "tmp", "work-abc"), { recursive: true })
    removeLeftovers(dir)
    expect(readdirSync(join(dir, "tmp"))).toEqual(["work-abc"])
  })
})

describe("a full disk", () => {
  test("is reported for a copy or a decompressed file, the rest is read, and the file is read once there is space", async ({
    skip,
  }) => {
    const disk = smallDisk(40 << 10)
    if (!disk) return skip()
    const [home, temp] = [tempDir(), tempDir()]
    const env = { DEX_HOME: join(disk, "dex"), ...ownTemp(temp) }
    const path = unshareable(home, 10, 1_000_000)
    const payload = { type: "message", role: "user", content: [{ type: "input_text", text: "zebrafinch" }] }
    const [meta, message] = [
      { type: "session_meta", payload: { id: "x", cwd: "/code" } },
      { type: "response_item", payload: payload },
    ].map((line) => `${JSON.stringify({ timestamp: "2026-11-03T10:00:00Z", ...line })}\n`)
    const blank = `${" ".repeat(1 << 20)}\n`.repeat(60)
    const packed = join(home, ".codex/sessions/rollout-x.jsonl.zst")
    mkdirSync(join(packed, ".."), { recursive: true })
    writeFileSync(packed, zstdCompressSync(meta + blank + message))
    claudeSession(home, { id: "1".repeat(8), start: "2026-11-03T10:00:00Z", turns: [{ user: "zebrafinch" }] })
    const report = JSON.parse((await dex(home, ["sync", "--json"], env)).stdout.trim().split("\n").at(-1)!) as {
      unreadable: { path: string; reason: string }[]
    }
    const reasons = new Map(report.unreadable.map((file) => [file.path, file.reason]))
    expect(reasons.get(path)).toMatch(/a copy needs \d+ MB, but only \d+ MB are free .*Free some space/)
    expect(reasons.get(packed)).toMatch(/no room to decompress it .*Free some space/)
    expect(await kept(home, env)).toBe(1)
    expect(below(join(disk, "dex", "tmp"))).toEqual([])
    execFileSync("mount", ["-o", "remount,size=400m", disk])
    expect((await dex(home, ["sync"], env)).code).toBe(0)
    expect(await kept(home, env)).toBe(12)
    expect(below(join(disk, "dex", "tmp"))).toEqual([])
    expect(readdirSync(temp)).toEqual([])
  })
})
