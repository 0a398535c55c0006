import { execFileSync, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync } from "node:fs"
import type { Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { onTestFinished } from "vitest"
import { type Database, openDatabase } from "../../src/store/connection.ts"
import { migrate } from "../../src/store/migrate.ts"

// A real PostgreSQL: the one that DEX_TEST_DATABASE_URL names, or one that this process starts and ends.

export type TestDatabase = {
  owner: string
  app: string
  index: string
  masterKey: Buffer
  /** Where the server keeps its files, if it is ours. */
  files?: string
}

let started: Promise<{ url: (role: string, database: string) => string; files?: string }> | undefined

/** Where no PostgreSQL is and none is named, the tests say that they were not run. */
export const hasPostgres = process.env.DEX_TEST_DATABASE_URL !== undefined || binaries() !== undefined
if (!hasPostgres)
  console.warn("No PostgreSQL: install postgresql or set DEX_TEST_DATABASE_URL, or the hub is not tested.")

/** A database of its own, with the hub's tables. */
export async function newDatabase({ migrated = true } = {}): Promise<TestDatabase> {
  started ??= process.env.DEX_TEST_DATABASE_URL === undefined ? startServer() : namedServer()
  const { url, files } = await started
  const name = `hub_${randomBytes(6).toString("hex")}`
  await run(url("postgres", "postgres"), `create database ${name}`)
  onTestFinished(async () => void (await run(url("postgres", "postgres"), `drop database ${name} with (force)`)))
  const owner = url("postgres", name)
  if (migrated) await migrate({ owner })
  return { owner, app: url("dex_hub_app", name), index: url("dex_hub_index", name), masterKey: randomBytes(32), files }
}

export function openTest(database: TestDatabase): Database {
  const db = openDatabase({ ...database, connections: 4 })
  onTestFinished(() => db.close())
  return db
}

/** As the owner, whom no wall stops. */
export async function run<Row extends object>(owner: string, sql: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: owner })
  await client.connect()
  try {
    return (await client.query(sql, values)).rows as Row[]
  } finally {
    await client.end()
  }
}

function binaries(): string | undefined {
  const root = "/usr/lib/postgresql"
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  return versions.map((version) => join(root, version, "bin")).find((dir) => existsSync(join(dir, "initdb")))
}

async function namedServer() {
  const named = new URL(process.env.DEX_TEST_DATABASE_URL!)
  const url = (role: string, database: string) => {
    const address = new URL(named)
    if (role !== "postgres") Object.assign(address, { username: role, password: "test" })
    address.pathname = `/${database}`
    return address.href
  }
  return { url }
}

/** PostgreSQL does not run as root. */
function ordinaryUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))
  return { uid: id("-u"), gid: id("-g") }
}

const WITH_ITS_PARENT = '"$@" & read _; kill -INT $!; wait $!; rm -rf "$0"'

async function startServer() {
  const bin = binaries()!
  const user = ordinaryUser()
  const folder = mkdtempSync(join(tmpdir(), "dex-pg-"))
  if (user) chownSync(folder, user.uid, user.gid)
  chmodSync(folder, 0o755)
  const files = join(folder, "data")
  const as = { ...user, cwd: folder, env: { PATH: process.env.PATH, LANG: "C.UTF-8" } }
  execFileSync(join(bin, "initdb"), ["-D", files, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"], {
    ...as,
    stdio: "ignore",
  })
  const settings = ["fsync=off", "full_page_writes=off", "listen_addresses=", "max_connections=200", "jit=off"]
  const args = ["-D", files, "-k", folder, ...settings.flatMap((setting) => ["-c", setting])]
  // However this process ends, the shell's input ends with it: then the server does, and its files are gone.
  const child = spawn("sh", ["-c", WITH_ITS_PARENT, folder, join(bin, "postgres"), ...args], {
    ...as,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  })
  child.unref()
  ;(child.stdin as Socket).unref()
  const url = (role: string, database: string) => `postgresql://${role}@/${database}?host=${encodeURIComponent(folder)}`
  await until(() => run(url("postgres", "postgres"), "select 1"))
  return { url, files }
}

async function until(work: () => Promise<unknown>): Promise<void> {
  for (let last = Date.now() + 60_000; ; )
    try {
      return void (await work())
    } catch (error) {
      if (Date.now() > last) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
}
