import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { openStore } from "../../src/store/sqlite-store.ts"
import { dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"

/** A file system of a few megabytes, or undefined where this user may not mount one. */
function smallDisk(megabytes: number): string | undefined {
  const dir = join(tempDir(), "disk")
  mkdirSync(dir)
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", dir], { stdio: "ignore" })
  } catch {
    return undefined
  }
  onTestFinished(() => void execFileSync("umount", [dir]))
  return dir
}

test("a full disk is said clearly, nothing stored is lost, and the sync goes on once there is room", async ({
  skip,
}) => {
  const disk = smallDisk(6)
  if (!disk) {
    console.log("NOT RUN: a full disk needs a small file system, and this user may not mount one")
    return skip()
  }
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
}, 120_000)

test("a home that cannot be written is said clearly, with what to do", async ({ skip }) => {
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

test("no home directory at all is said clearly, with what to do", async () => {
  const run = await dex(tempDir(), ["list"], { HOME: "", DEX_HOME: "/dev/null/dex" })
  expect(run.code).toBe(2)
  expect(run.stderr).toMatch(/DEX_HOME/)
  expect(run.stderr).not.toMatch(/should not happen/)
})
