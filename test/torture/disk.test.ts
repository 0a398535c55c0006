import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { appendTrace } from "../../src/trace/append.ts"
import { DEX, dex } from "../support/dex.ts"
import { smallDisk } from "../support/small-disk.ts"
import { tempDir } from "../support/temp.ts"
import { traceOf } from "../trace/traces.ts"

test("a full disk is reported clearly, loses nothing that was stored, and the sync continues once there is space", async ({
  skip,
}) => {
  const disk = smallDisk(6 << 10)
  if (!disk) return skip()
  const home = tempDir()
  const { messages } = generateCorpus(join(home, ".claude"), { messages: 4000, messagesPerConversation: 50, seed: 3 })
  const env = { DEX_HOME: join(disk, "dex") }
  const ballast = join(disk, "ballast")
  for (const kilobytes of [5800, 5000, 4000, 3000]) {
    writeFileSync(ballast, Buffer.alloc(kilobytes << 10))
    const run = await dex(home, ["sync"], env)
    expect(run.code).toBe(2)
    expect(run.stderr).toMatch(/disk is full.*Free some space/s)
    expect(run.stderr).not.toMatch(/should not happen/)
    rmSync(ballast)
    if (!existsSync(join(disk, "dex", "history.db"))) continue
    const store = openStore(join(disk, "dex", "history.db"))
    expect(await store.check()).toEqual([])
    store.close()
  }
  execFileSync("mount", ["-o", "remount,size=200m", disk])
  expect((await dex(home, ["sync"], env)).code).toBe(0)
  const stats = JSON.parse((await dex(home, ["stats", "--json"], env)).stdout) as { total_messages: number }
  expect(stats.total_messages).toBe(messages)
})

/**
 * Runs a program with a limit on the size of files. As on a disk that fills up, the system writes the part that still fits,
 * returns its length, and refuses only the rest.
 */
function withFilesUpTo(bytes: number, home: string, args: string[]) {
  const limited = ["-c", `ulimit -f ${bytes / 512} && exec "$@"`, "sh", process.execPath, ...args]
  const env = { PATH: "/usr/bin:/bin", HOME: home, TZ: "UTC", NO_COLOR: "1", NODE_DISABLE_COMPILE_CACHE: "1" }
  return spawnSync("sh", limited, { cwd: home, env, encoding: "utf8" })
}

/** Settings with exactly this many bytes. */
function settingsOf(bytes: number): string {
  const start = '{\n  "numStartups": 4,\n  "history": "'
  return `${start}${"x".repeat(bytes - start.length - 4)}"\n}\n`
}

test("if an agent's settings do not fit on the disk, they and their backup stay complete, and dex says so", async () => {
  const limit = 64 << 10
  // With the first size the backup still fits, but not the changed file. With the second not even the backup fits.
  for (const bytes of [limit, 2 * limit]) {
    const home = tempDir()
    const settings = join(home, ".claude.json")
    const before = settingsOf(bytes)
    writeFileSync(settings, before)
    const install = withFilesUpTo(limit, home, [DEX, "install", "claude", "--yes"])
    expect(install.status).not.toBe(0)
    expect(install.stdout + install.stderr).toMatch(/\.claude\.json\s+cannot\s+be\s+(written|backed\s+up)/)
    expect(readFileSync(settings, "utf8") === before).toBe(true)
    expect(readdirSync(home).filter((name) => name.endsWith(".dex-new"))).toEqual([])
    const backups = join(home, ".dex", "backups")
    for (const name of existsSync(backups) ? readdirSync(backups) : [])
      if (name.includes(".claude.json")) expect(statSync(join(backups, name)).size).toBe(before.length)
  }
  const home = tempDir()
  const settings = join(home, ".claude.json")
  writeFileSync(settings, settingsOf(2 * limit))
  expect((await dex(home, ["install", "claude", "--yes"], { PATH: "/usr/bin:/bin" })).code).toBe(0)
  const wired = `${readFileSync(settings, "utf8")}\n`
  writeFileSync(settings, wired)
  expect(withFilesUpTo(limit, home, [DEX, "uninstall", "claude", "--yes"]).status).not.toBe(0)
  expect(readFileSync(settings, "utf8") === wired).toBe(true)
})

test("if dex cannot store its record of an install, it changes no agent's file, and says so", () => {
  const home = tempDir()
  writeFileSync(join(home, ".claude.json"), "{}")
  const run = withFilesUpTo(512, home, [DEX, "install", "claude", "--yes"])
  expect(run.status).toBe(2)
  expect(run.stderr).toMatch(/integrations\.json cannot be written/)
  expect(run.stderr).not.toMatch(/should not happen/)
  expect(readFileSync(join(home, ".claude.json"), "utf8")).toBe("{}")
})

test("a setting that does not fit leaves the other settings unchanged", async () => {
  const home = tempDir()
  for (const name of ["embed.model", "llm.model", "embed.url"])
    expect((await dex(home, ["config", "set", name, `https://${"x".repeat(250)}`])).code).toBe(0)
  const before = readFileSync(join(home, ".dex", "config.json"), "utf8")
  const run = withFilesUpTo(512, home, [DEX, "config", "set", "rerank.model", "y"])
  expect(run.status).toBe(2)
  expect(run.stderr).toMatch(/config\.json cannot be written.*Nothing was changed/)
  expect(readFileSync(join(home, ".dex", "config.json"), "utf8")).toBe(before)
  expect(readdirSync(join(home, ".dex")).filter((name) => name.endsWith(".new"))).toEqual([])
})

test("a paid answer that cannot be stored completely is reported as lost, and leaves nothing behind", () => {
  const home = tempDir()
  const program = `const { openCache } = await import(process.argv[1])
    openCache(process.argv[2]).put("key", { refs: [], value: "x".repeat(5000) })`
  const cache = join(import.meta.dirname, "../../src/answers/map/cache.ts")
  const run = withFilesUpTo(512, home, ["--input-type=module", "-e", program, cache, home])
  expect(run.status).toBe(1)
  expect(run.stderr).toMatch(/map cannot be written .*paid answers could not be stored/)
  expect(readdirSync(join(home, "map"))).toEqual([])
})

test("a trace that cannot be overwritten completely is not reported as forgotten", () => {
  const home = tempDir()
  const dir = join(home, "traces")
  appendTrace(dir, traceOf({ args: { ids: ["claude_code:deadbeef"] }, query: "z".repeat(3000) }))
  const program = `const { forgetTraces } = await import(process.argv[1])
    forgetTraces(process.argv[2], [{ source: "claude_code", id: "deadbeef" }])`
  const forget = join(import.meta.dirname, "../../src/trace/forget.ts")
  expect(withFilesUpTo(512, home, ["--input-type=module", "-e", program, forget, dir]).stderr).toMatch(/EFBIG/)
})

test("a home that cannot be written is reported clearly, with what to do", async ({ skip }) => {
  if (process.getuid?.() === 0) {
    console.log("NOT RUN: root may write everywhere")
    return skip()
  }
  const home = tempDir()
  mkdirSync(join(home, "ro"), { mode: 0o500 })
  const run = await dex(home, ["sync"], { DEX_HOME: join(home, "ro", "dex") })
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/cannot be written.*DEX_HOME/s)
})

/** No user, not even root, can create a folder in /sys or below /dev/null. */
test.runIf(process.platform === "linux").each([["/sys/dex"], ["/dev/null/dex"]])(
  "%s is reported as a home that cannot be written",
  async (home) => {
    for (const args of [["list"], ["sync"], ["search", "x"]]) {
      const run = await dex(tempDir(), args, { DEX_HOME: home })
      expect([args, run.code]).toEqual([args, 2])
      expect(run.stderr).toMatch(/cannot be (?:written|opened).*DEX_HOME/s)
      expect(run.stderr).not.toMatch(/should not happen/)
    }
  },
)

test("a missing home directory is reported clearly, with what to do", async () => {
  for (const args of [["list"], ["sync"], []]) {
    const run = await dex(tempDir(), args, { HOME: "" })
    expect([args, run.code]).toEqual([args, 2])
    expect(run.stderr).toMatch(/No home directory is known.*Set DEX_HOME/s)
    expect(run.stderr).not.toMatch(/should not happen/)
  }
})
