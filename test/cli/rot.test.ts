import { rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { dex } from "../support/dex.ts"
import { flipBit, loseSector, rotBodies, rotRecords } from "../support/rot.ts"
import { synced } from "../support/synced.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const SIDEBAR = "claude_code:22222222-2222-4222-8222-222222222222"
const READING = [
  ["search", "mutex"],
  ["show", AUTH],
  ["timeline", AUTH],
  ["scan", AUTH],
  ["handover", AUTH],
  ["reindex"],
]

const shown = async (home: string, ref = AUTH) => (await dex(home, ["show", ref])).stdout

describe("a damaged block of messages", () => {
  test("leaves out what cannot be read, says so, and stops no command", async () => {
    const home = await synced()
    rotBodies(home, AUTH, loseSector)
    for (const args of READING) {
      const run = await dex(home, args)
      expect([args, run.stderr]).toEqual([args, expect.stringContaining(AUTH)])
      expect(run.stderr).toMatch(/history\.db is damaged in places.*`dex sync` restores what it can/)
      expect(run.stdout).not.toMatch(/mutex/)
    }
    expect((await dex(home, ["list"])).stdout).toMatch(/Refresh token race/)
    expect((await dex(home, ["show", SIDEBAR])).stderr).not.toMatch(/damaged/)
    expect((await dex(home, ["search", "flickers"])).stdout).toMatch(/sidebar/i)
  })

  test("with a single flipped bit is read as it was written, and the flipped bit is reported", async () => {
    const home = await synced()
    const before = await Promise.all(READING.map((args) => dex(home, args)))
    rotBodies(home, AUTH, flipBit)
    for (const [i, args] of READING.entries()) {
      const run = await dex(home, args)
      if (args[0] !== "reindex") expect([args, run.stdout]).toEqual([args, before[i]!.stdout])
      expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining(AUTH) })
    }
    expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
    expect(await dex(home, ["show", AUTH])).toEqual(before[1])
  })

  test("is restored by the next sync from the agent's file", async () => {
    const home = await synced()
    const before = await shown(home)
    rotBodies(home, AUTH, loseSector)
    rotRecords(home, AUTH, loseSector)
    expect(await shown(home)).not.toEqual(before)
    expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
    expect(await dex(home, ["show", AUTH])).toMatchObject({
      stdout: before,
      stderr: expect.not.stringMatching(/damaged/),
    })
    expect((await dex(home, ["doctor", "--json"])).stdout).not.toMatch(/damaged/)
  })

  test("is restored from its raw records when the agent has deleted its file", async () => {
    const home = await synced()
    rmSync(join(home, ".claude"), { recursive: true })
    await dex(home, ["sync"])
    const before = await shown(home)
    rotBodies(home, AUTH, loseSector)
    await shown(home)
    expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
    expect(await shown(home)).toEqual(before)
  })

  test("is kept as it is where neither is left, and everything else goes on", async () => {
    const home = await synced()
    rmSync(join(home, ".claude"), { recursive: true })
    await dex(home, ["sync"])
    rotBodies(home, AUTH, loseSector)
    rotRecords(home, AUTH, loseSector)
    await shown(home)
    const run = await dex(home, ["sync"])
    expect(run).toMatchObject({ code: 0, stderr: expect.stringMatching(`Damaged in history.db: ${AUTH}`) })
    expect((await dex(home, ["list"])).stdout).toMatch(/Refresh token race/)
    expect((await dex(home, ["search", "flickers"])).stdout).toMatch(/sidebar/i)
  })
})

describe("damaged raw records", () => {
  test("are made again from the agent's file, and the messages stay", async () => {
    const home = await synced()
    const before = await shown(home)
    rotRecords(home, AUTH, loseSector)
    expect(await shown(home)).toEqual(before)
    await dex(home, ["doctor"])
    expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
    expect(await shown(home)).toEqual(before)
  })
})
