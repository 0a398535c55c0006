import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import type { Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { childrenOf } from "../../../test/support/processes.ts"

// Starts Debian's PostgreSQL for as long as this process lives.

export type StartedPostgres = {
  url: (role: string, database: string) => string
  files?: string
  /** Sends a signal to all of its processes. */
  signal?(signal: NodeJS.Signals): void
  /** Starts it again with its files, after it was killed. */
  again?(): Promise<void>
}

/** The folder of its programs; undefined if it is not installed. */
export function postgresPrograms(): string | undefined {
  const root = "/usr/lib/postgresql"
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  return versions.map((version) => join(root, version, "bin")).find((dir) => existsSync(join(dir, "initdb")))
}

/** PostgreSQL does not run as root. */
export function ordinaryUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))
  return { uid: id("-u"), gid: id("-g") }
}

const FAST = ["fsync=off", "full_page_writes=off", "jit=off"]
const WITH_ITS_PARENT = '"$@" & read _; kill -INT $!; wait $!; rm -rf "$0"'

/** The settings with which a server restores a copy of another one's files: everything that was copied, and no more. */
const RESTORE = ["restore_command=false", "recovery_target_timeline=current", "hot_standby=off"]

/** Copies the files of a server that runs, as a backup does. Returns a function that starts a server with them: one that takes writes, or a standby. */
export function backUpPostgres(
  url: StartedPostgres["url"],
  { isStandby = false } = {},
): () => Promise<StartedPostgres> {
  const user = ordinaryUser()
  const folder = mkdtempSync(join(tmpdir(), "dex-pg-backup-"))
  if (user) chownSync(folder, user.uid, user.gid)
  const args = ["-d", url("postgres", "postgres"), "-D", folder, "-X", "fetch", "--checkpoint=fast", "--no-sync"]
  execFileSync(join(postgresPrograms()!, "pg_basebackup"), args, { ...user, cwd: folder })
  writeFileSync(join(folder, isStandby ? "standby.signal" : "recovery.signal"), "")
  return () => startPostgres([...FAST, ...(isStandby ? [] : RESTORE)], folder)
}

/**
 * Starts a server that is as fast as possible, for data that nobody needs tomorrow, or one with these settings. `backup` has the
 * files to begin with.
 */
export async function startPostgres(settings = FAST, backup?: string): Promise<StartedPostgres> {
  const bin = postgresPrograms()!
  const user = ordinaryUser()
  const folder = mkdtempSync(join(tmpdir(), "dex-pg-"))
  if (user) chownSync(folder, user.uid, user.gid)
  chmodSync(folder, 0o755)
  const files = join(folder, "data")
  const as = { ...user, cwd: folder, env: { PATH: process.env.PATH, LANG: "C.UTF-8" } }
  if (backup !== undefined) execFileSync("cp", ["-a", backup, files], as)
  else
    execFileSync(join(bin, "initdb"), ["-D", files, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"], {
      ...as,
      stdio: "ignore",
    })
  const args = [
    "-D",
    files,
    "-k",
    folder,
    ...[...settings, "listen_addresses=", "max_connections=200"].flatMap((setting) => ["-c", setting]),
  ]
  const url = (role: string, database: string) => `postgresql://${role}@/${database}?host=${encodeURIComponent(folder)}`
  const start = async () => {
    // When this process ends, the shell's input ends too. Then the shell stops the server and deletes its files.
    const child = spawn("sh", ["-c", WITH_ITS_PARENT, folder, join(bin, "postgres"), ...args], {
      ...as,
      cwd: "/",
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    })
    child.unref()
    ;(child.stdin as Socket).unref()
    await until(() => runAs(url("postgres", "postgres"), "select 1"))
  }
  await start()
  const signal = (sent: NodeJS.Signals) => {
    const server = Number(readFileSync(join(files, "postmaster.pid"), "utf8").split("\n")[0])
    for (const pid of [server, ...childrenOf(server)]) process.kill(pid, sent)
  }
  const again = async () => {
    for (const lock of [join(files, "postmaster.pid"), ...globSync(join(folder, ".s.PGSQL.*"))]) rmSync(lock)
    await start()
  }
  return { url, files, signal, again }
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

/** Runs one statement on a new connection. */
export async function runAs<Row extends object>(owner: string, sql: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: owner })
  await client.connect()
  try {
    return (await client.query(sql, values)).rows as Row[]
  } finally {
    await client.end()
  }
}
