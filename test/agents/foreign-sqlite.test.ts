import { spawn, spawnSync } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import {
  columnsOf,
  databaseStamp,
  type ForeignDatabase,
  withForeignDatabase,
  withFoundDatabase,
} from "../../src/agents/kit/foreign-sqlite.ts"
import { tempDir, treeHash } from "../support/temp.ts"

const MODULE = new URL("../../src/agents/kit/foreign-sqlite.ts", import.meta.url).href

const count = (db: ForeignDatabase) => db.all("select count(*) as n from t")[0]?.n

function makeDatabase(path: string, journal: "wal" | "delete", rows = 3): void {
  const db = new DatabaseSync(path)
  db.exec(`pragma journal_mode = ${journal}; create table t (x)`)
  for (let i = 0; i < rows; i++) db.prepare("insert into t values (?)").run(`row ${i}`)
  db.close()
}

/** A database as a killed program leaves it: rows in the `-wal` that the main file does not have. */
function makeKilled(path: string, keep: string[]): void {
  const live = join(tempDir(), "live.db")
  const db = new DatabaseSync(live)
  db.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table t (x)")
  db.exec("insert into t values ('only in the wal')")
  for (const suffix of keep) copyFileSync(live + suffix, path + suffix)
  db.close()
}

/** A scratch folder that does not exist yet. */
const newScratch = () => join(tempDir(), "dex", "tmp")

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  )
}

test.each(["wal", "delete"] as const)("reads a closed database in %s mode and leaves no sidecar", (journal) => {
  const dir = tempDir()
  const path = join(dir, "app.db")
  makeDatabase(path, journal)
  const before = treeHash(dir)
  expect(withForeignDatabase(path, count)).toBe(3)
  expect(treeHash(dir)).toEqual(before)
  expect(readdirSync(dir)).toEqual(["app.db"])
})

describe("a database that cannot be read in place", () => {
  test("is copied only into the scratch folder, with the rows of a leftover -wal without its -shm", () => {
    const dir = tempDir()
    const path = join(dir, "app.db")
    makeKilled(path, ["", "-wal"])
    const before = treeHash(dir)
    const [temp, scratch] = [tempDir(), newScratch()]
    vi.stubEnv("TMPDIR", temp)
    expect(withForeignDatabase(path, (db) => db.all("select x from t"), scratch)).toEqual([{ x: "only in the wal" }])
    vi.unstubAllEnvs()
    expect(treeHash(dir)).toEqual(before)
    expect(readdirSync(temp)).toEqual([])
    expect(filesIn(scratch)).toEqual([expect.stringMatching(/app\.db$/)])
  })

  test("is private to its owner in the scratch folder", () => {
    if (process.platform === "win32") return
    const path = join(tempDir(), "app.db")
    makeKilled(path, ["", "-wal"])
    chmodSync(path, 0o644)
    const scratch = newScratch()
    const modes = withForeignDatabase(
      path,
      (db) => {
        db.all("select x from t")
        const all = readdirSync(scratch, { recursive: true }).map((name) => join(scratch, String(name)))
        return [scratch, ...all].map((file) => statSync(file).mode & 0o077)
      },
      scratch,
    )
    expect(modes.length).toBeGreaterThan(4)
    expect(new Set(modes)).toEqual(new Set([0]))
  })

  test("is copied once per state, and again when it has changed", () => {
    const path = join(tempDir(), "app.db")
    makeKilled(path, ["", "-wal"])
    const scratch = newScratch()
    const copies = () => filesIn(scratch).map((file) => `${file} ${statSync(file).ino} ${statSync(file).birthtimeMs}`)
    withForeignDatabase(path, count, scratch)
    const first = copies()
    for (let i = 0; i < 13; i++) expect(withForeignDatabase(path, count, scratch)).toBe(1)
    expect(copies()).toEqual(first)
    utimesSync(path, 1_000, 1_000)
    expect(withForeignDatabase(path, count, scratch)).toBe(1)
    expect(copies()).toHaveLength(1)
    expect(copies()).not.toEqual(first)
  })

  test("is read as it was found, even if its program has written since", () => {
    const path = join(tempDir(), "app.db")
    makeKilled(path, ["", "-wal"])
    const scratch = newScratch()
    withForeignDatabase(path, count, scratch)
    const first = filesIn(scratch)
    utimesSync(path, 1_000, 1_000)
    for (let i = 0; i < 13; i++) expect(withFoundDatabase(path, count, scratch)).toBe(1)
    expect(filesIn(scratch)).toEqual(first)
    // A new discovery sees the current state.
    for (const suffix of ["-wal", ""]) rmSync(path + suffix)
    makeDatabase(path, "delete", 5)
    expect(withForeignDatabase(path, count, scratch)).toBe(5)
    expect(withFoundDatabase(path, count, scratch)).toBe(5)
  })

  test("is distinguished from another database of the same name", () => {
    const [one, other] = [join(tempDir(), "app.db"), join(tempDir(), "app.db")]
    for (const path of [one, other]) makeKilled(path, ["", "-wal"])
    const scratch = newScratch()
    for (const path of [one, other, one, other]) expect(withForeignDatabase(path, count, scratch)).toBe(1)
    expect(filesIn(scratch)).toHaveLength(2)
  })

  test("leaves no partial copy if copying fails, and says why", () => {
    const path = join(tempDir(), "app.db")
    makeKilled(path, ["", "-wal"])
    expect(() => withForeignDatabase(path, count)).toThrow("there is no folder for a copy of it")
    const scratch = newScratch()
    truncateSync(path, 2 ** 43)
    expect(() => withForeignDatabase(path, count, scratch)).toThrow(
      /^it cannot be read in place, and a copy needs 8796\d* MB, but only \d+ MB are free \(.*\)\. Free some space/,
    )
    expect(readdirSync(scratch)).toEqual([])
  })
})

test("does not repair the -shm that a killed program left", () => {
  const dir = tempDir()
  const path = join(dir, "app.db")
  makeKilled(path, ["", "-wal", "-shm"])
  const before = treeHash(dir)
  expect(withForeignDatabase(path, count)).toBe(1)
  expect(treeHash(dir)).toEqual(before)
})

test("rolls a hot journal back in its copy, not in the source", () => {
  const dir = tempDir()
  const live = join(tempDir(), "live.db")
  const path = join(dir, "app.db")
  const db = new DatabaseSync(live)
  db.exec("create table t (x, filler); begin")
  for (let i = 0; i < 500; i++) db.prepare("insert into t values ('kept', ?)").run("filler ".repeat(100))
  db.exec("commit; pragma cache_size = 1; pragma cache_spill = 1; begin immediate; update t set x = 'lost'")
  for (const suffix of ["", "-journal"]) copyFileSync(live + suffix, path + suffix)
  db.exec("rollback")
  db.close()
  const before = treeHash(dir)
  const rows = (foreign: ForeignDatabase) => foreign.all("select x, count(*) as n from t group by x")
  expect(withForeignDatabase(path, rows, newScratch())).toEqual([{ x: "kept", n: 500 }])
  expect(treeHash(dir)).toEqual(before)
})

test("reads databases in a read-only folder, without permission to write", () => {
  const dir = tempDir()
  makeDatabase(join(dir, "closed.db"), "wal")
  makeKilled(join(dir, "killed.db"), ["", "-wal", "-shm"])
  makeKilled(join(dir, "torn.db"), ["", "-wal"])
  for (const name of readdirSync(dir)) chmodSync(join(dir, name), 0o444)
  chmodSync(dir, 0o555)
  try {
    const before = treeHash(dir)
    const scratch = tempDir()
    chmodSync(scratch, 0o777)
    const run = spawnSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", READER, dir, scratch], {
      encoding: "utf8",
      ...(process.getuid?.() === 0 && { uid: 65534, gid: 65534 }), // root may write everywhere, so the user nobody reads
    })
    expect(run.stderr).toBe("")
    expect(JSON.parse(run.stdout)).toEqual({ mayWrite: false, closed: 3, killed: 1, torn: 1 })
    expect(treeHash(dir)).toEqual(before)
  } finally {
    chmodSync(dir, 0o755)
  }
})

const READER = `
import { accessSync, constants } from "node:fs"
import { withForeignDatabase } from ${JSON.stringify(MODULE)}
const told = { mayWrite: true }
try { accessSync(process.argv[1], constants.W_OK) } catch { told.mayWrite = false }
for (const name of ["closed", "killed", "torn"])
  told[name] = withForeignDatabase(process.argv[1] + "/" + name + ".db", (db) => db.all("select count(*) as n from t")[0].n, process.argv[2])
console.log(JSON.stringify(told))
`

test("reads next to a live writer in WAL mode: every read is consistent, and the writer never has to wait", async () => {
  const dir = tempDir()
  const path = join(dir, "app.db")
  const writer = spawn(process.execPath, ["--no-warnings", "--input-type=module", "-e", WRITER, path], {
    stdio: ["pipe", "pipe", "inherit"],
  })
  onTestFinished(() => void writer.kill())
  let printed = ""
  writer.stdout.on("data", (data) => {
    printed += data
  })
  await vi.waitFor(() => expect(printed).toContain("ready"), 100_000)
  const scratch = newScratch()
  let first: number | undefined
  let last = 0
  let reads = 0
  const deadline = Date.now() + 200_000
  // until reader and writer have really overlapped: a slow machine takes longer, but proves no less
  while ((reads < 300 || last - (first ?? last) < 200) && Date.now() < deadline) {
    const counts = (db: ForeignDatabase) => ({
      pairs: Number(db.all("select count(*) as n from pair")[0]?.n),
      rows: Number(db.all("select count(*) as n from t")[0]?.n),
    })
    const read = readNow(() => withForeignDatabase(path, counts, scratch))
    if (!read) continue
    const { pairs, rows } = read
    expect(rows).toBe(pairs * 2)
    expect(pairs).toBeGreaterThanOrEqual(last)
    first ??= pairs
    last = pairs
    reads++
  }
  expect(reads).toBeGreaterThanOrEqual(300)
  expect(last - first!).toBeGreaterThanOrEqual(200)
  writer.stdin.write("stop\n")
  await new Promise((done) => writer.on("close", done))
  const { busy, written } = JSON.parse(printed.slice(printed.indexOf("{"))) as { busy: number; written: number }
  expect(busy).toBe(0)
  expect(written).toBeGreaterThanOrEqual(last)
  expect(readdirSync(dir)).toEqual(["app.db"])
  expect(withForeignDatabase(path, (db) => db.all("select count(*) as n from pair"))).toEqual([{ n: written }])
})

/** The result, or nothing if the writer was too quick for a copy: a sync reports that, and the next one tries again. */
function readNow<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error as Error).message.includes("changes faster than it can be copied")) throw error
    return undefined
  }
}

const WRITER = `
import { DatabaseSync } from "node:sqlite"
const db = new DatabaseSync(process.argv[1])
db.exec("pragma journal_mode = wal; pragma busy_timeout = 0; pragma wal_autocheckpoint = 50; create table pair (x); create table t (x)")
const pair = db.prepare("insert into pair values (?)"), row = db.prepare("insert into t values (?)")
let busy = 0, written = 0, stop = false
process.stdin.on("data", () => { stop = true })
const step = () => {
  for (let i = 0; i < 5; i++) {
    try {
      db.exec("begin immediate"); pair.run(written); row.run("a".repeat(500)); row.run("b".repeat(500)); db.exec("commit"); written++
    } catch (error) { busy++; try { db.exec("rollback") } catch {} }
  }
  if (written === 20) console.log("ready")
  if (stop) { db.close(); console.log(JSON.stringify({ busy, written })); process.stdin.unref?.(); process.exit(0) }
  setTimeout(step, 1)
}
step()
`

test("reads again if the file changes during the read", () => {
  const path = join(tempDir(), "app.db")
  makeDatabase(path, "delete")
  let runs = 0
  const seen = withForeignDatabase(path, (db) => {
    const rows = count(db)
    if (++runs === 1) {
      const writer = new DatabaseSync(path)
      writer.exec("insert into t values ('late')")
      writer.close()
    }
    return rows
  })
  expect({ seen, runs }).toEqual({ seen: 4, runs: 2 })
})

test("reads a copy if the file keeps changing", () => {
  const path = join(tempDir(), "app.db")
  makeDatabase(path, "delete")
  let runs = 0
  const moving = (db: ForeignDatabase) => {
    if (++runs <= 4) utimesSync(path, 1_000 + runs, 1_000 + runs)
    return count(db)
  }
  const seen = withForeignDatabase(path, moving, newScratch())
  expect({ seen, runs }).toEqual({ seen: 3, runs: 5 })
})

test("the caller's own error is thrown unchanged, once", () => {
  const path = join(tempDir(), "app.db")
  makeDatabase(path, "wal")
  let runs = 0
  const failing = () =>
    withForeignDatabase(path, () => {
      runs++
      throw new TypeError("mine")
    })
  expect(failing).toThrow(new TypeError("mine"))
  expect(runs).toBe(1)
})

test("says what is wrong with a file that is not a database, a torn one, a folder and a missing one", () => {
  const dir = tempDir()
  const path = join(dir, "app.db")
  writeFileSync(path, "this is no database, it only has the name of one".repeat(100))
  expect(() => withForeignDatabase(path, count)).toThrow("not readable as a database: file is not a database")
  makeDatabase(join(dir, "whole.db"), "delete", 50)
  const torn = join(dir, "torn.db")
  copyFileSync(join(dir, "whole.db"), torn)
  writeFileSync(torn, Buffer.alloc(8192, 7), { flag: "r+" })
  expect(() => withForeignDatabase(torn, count)).toThrow("not readable as a database")
  expect(() => withForeignDatabase(dir, count)).toThrow()
  expect(() => withForeignDatabase(join(dir, "none.db"), count)).toThrow("ENOENT")
  expect(existsSync(join(dir, "none.db"))).toBe(false)
})

test.each(["a b", "100%", "%41", "what?x=1", "no#1", "ä漢", "q?mode=rwc&immutable=0"])(
  "opens a path with %s in it",
  (name) => {
    if (process.platform === "win32" && name.includes("?")) return
    const dir = join(tempDir(), name)
    mkdirSync(dir)
    makeDatabase(join(dir, `${name}.db`), "wal")
    expect(withForeignDatabase(join(dir, `${name}.db`), count)).toBe(3)
    expect(readdirSync(dir)).toEqual([`${name}.db`])
  },
)

test("follows a link to a database, next to its -wal", () => {
  const dir = tempDir()
  const path = join(dir, "app.db")
  makeKilled(path, ["", "-wal"])
  const link = join(tempDir(), "link.db")
  symlinkSync(path, link)
  expect(withForeignDatabase(link, count, newScratch())).toBe(1)
  expect(databaseStamp(link)).toBe(databaseStamp(path))
})

test("cannot write, whatever the query", () => {
  const path = join(tempDir(), "app.db")
  makeDatabase(path, "wal")
  expect(() => withForeignDatabase(path, (db) => db.all("insert into t values (1)"))).toThrow("readonly")
  makeKilled(path, ["", "-wal"])
  const insert = (db: ForeignDatabase) => db.all("insert into t values (1)")
  expect(() => withForeignDatabase(path, insert, newScratch())).toThrow("readonly")
})

test("returns numbers as numbers, those beyond 2^53 as text, and blobs as bytes", () => {
  const path = join(tempDir(), "app.db")
  const db = new DatabaseSync(path)
  db.exec("create table t (a, b, c, d, e); insert into t values (1, 9007199254740993, x'0102', null, 1.5)")
  db.close()
  const expected = [{ a: 1, b: "9007199254740993", c: new Uint8Array([1, 2]), d: null, e: 1.5 }]
  expect(withForeignDatabase(path, (foreign) => foreign.all("select * from t"))).toEqual(expected)
  expect(withForeignDatabase(path, (foreign) => [...foreign.iterate("select * from t where a = ?", 1)])).toEqual(
    expected,
  )
  expect(withForeignDatabase(path, (foreign) => [...columnsOf(foreign, "t")])).toEqual(["a", "b", "c", "d", "e"])
  expect(withForeignDatabase(path, (foreign) => [...columnsOf(foreign, "none")])).toEqual([])
})

test("the stamp changes with the -wal alone, but not with an empty one", () => {
  const path = join(tempDir(), "app.db")
  makeDatabase(path, "wal")
  const closed = databaseStamp(path)
  writeFileSync(`${path}-wal`, "")
  expect(databaseStamp(path)).toBe(closed)
  const db = new DatabaseSync(path)
  db.exec("insert into t values (1)")
  const written = databaseStamp(path)
  expect(written).not.toBe(closed)
  db.exec("insert into t values (2)")
  expect(databaseStamp(path)).not.toBe(written)
  db.close()
})

test("does not load node:sqlite before a database is read", () => {
  const script = `
    const before = process.getBuiltinModule
    let asked = 0
    process.getBuiltinModule = (name) => { if (name === "node:sqlite") asked++; return before(name) }
    await import(${JSON.stringify(MODULE)})
    console.log(asked)`
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" })
  expect(run.stdout.trim()).toBe("0")
})
