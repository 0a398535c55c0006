import { execFile } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { DEX, dex, type Run } from "../support/dex.ts"
import { smallHome } from "../support/home.ts"
import { fill, smallDisk } from "../support/small-disk.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"

// A full disk is reported in one sentence with exit code 2. What was stored before is still there.

const FULL =
  /^dex: The disk is full: \S+ could not be written\. What was stored before is safe\. Free some space and try again\.$/

function expectError(run: Run, sentence: RegExp): void {
  expect({ code: run.code, lines: run.stderr.trim().split("\n") }).toEqual({
    code: 2,
    lines: [expect.stringMatching(sentence)],
  })
}

test("on a full disk no command can begin a history, and each one says so", async ({ skip }) => {
  const home = tempDir()
  smallHome(home)
  writeFileSync(join(home, "notes.md"), "# Notes\n\nThe cache is cold.\n")
  for (const kilobytes of [16, 64, 220])
    for (const words of [["sync"], ["search", "token"], ["docs", "add", "notes.md"], []]) {
      const disk = smallDisk(kilobytes)
      if (!disk) return skip()
      expectError(await dex(home, words, { DEX_HOME: disk }), FULL)
    }
})

test("if the disk has become full, commands and doctor say so, and work again once there is space", async ({
  skip,
}) => {
  const disk = smallDisk(8_000)
  if (!disk) return skip()
  const home = await synced()
  cpSync(join(home, ".dex"), disk, { recursive: true })
  fill(disk)
  const env = { DEX_HOME: disk }
  for (const words of [["sync"], ["search", "token"], ["list"], ["show", "11111111"], ["fix", "token already used"]])
    expectError(await dex(home, words, env), FULL)
  expect(await dex(home, ["doctor"], env)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("The disk is full"),
  })
  rmSync(join(disk, "ballast"))
  expect((await dex(home, ["show", "11111111"], env)).stdout).toContain("mutex")
})

test("a full disk leaves the agents' settings unchanged", async ({ skip }) => {
  const disk = smallDisk(512)
  if (!disk) return skip()
  const settings = join(disk, ".claude", "settings.json")
  mkdirSync(join(disk, ".claude"))
  writeFileSync(settings, '{"model":"opus"}')
  fill(disk)
  const env = { DEX_HOME: join(tempDir(), "dex") }
  const full = await dex(disk, ["install", "-y"], env)
  expectError(
    full,
    /^dex: \S+ cannot be written \(ENOSPC.*\)\. This file was not changed\. Free some space and run this again/,
  )
  expect(readFileSync(settings, "utf8")).toBe('{"model":"opus"}')
  rmSync(join(disk, "ballast"))
  expect((await dex(disk, ["install", "-y"], env)).code).toBe(0)
  expect((await dex(disk, ["uninstall", "-y"], env)).code).toBe(0)
  expect(readFileSync(settings, "utf8")).toBe('{"model":"opus"}')
})

test.skipIf(process.platform === "win32")(
  "a sync that exceeds the system's limit on file size says to check the disk",
  async () => {
    const home = tempDir()
    smallHome(home)
    const run = await new Promise<Run>((resolve) => {
      const env = { PATH: process.env.PATH ?? "", HOME: home, NO_COLOR: "1" }
      const line = `ulimit -f 64; exec "${process.execPath}" "${DEX}" sync`
      execFile("sh", ["-c", line], { env, cwd: home }, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      )
    })
    expectError(run, /^dex: dex could not read or write \S+ \(disk I\/O error\)\. Check the disk's space/)
  },
)
