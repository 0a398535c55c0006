import { execFile } from "node:child_process"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { smallDisk } from "../../test/support/small-disk.ts"
import { tempDir } from "../../test/support/temp.ts"
import { hasPostgres, newDatabase } from "./support/postgres.ts"
import { hubEnv } from "./support/server.ts"
import { newTeam, newTenant, type Team } from "./support/team.ts"

const MAIN = join(import.meta.dirname, "../src/main.ts")

/** The output of `dex-hub check` with these settings, and its exit code. */
function check(env: Record<string, string>): Promise<{ code: number; lines: string[] }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, "check"], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, lines: `${stdout}${stderr}`.trim().split("\n") }),
    )
  })
}

const problems = (lines: string[]) => lines.filter((line) => !line.startsWith("ok "))

async function checkedTeam(): Promise<Team> {
  const team = await newTeam()
  await newTenant(team)
  return team
}

describe.skipIf(!hasPostgres)("dex-hub check", () => {
  test("reports each check that passes", async () => {
    const { code, lines } = await check(hubEnv(await checkedTeam()))
    expect(problems(lines)).toEqual([])
    expect(code).toBe(0)
    expect(lines.length).toBeGreaterThanOrEqual(8)
    expect(lines).toContain("ok       the master key opens the keys of 1 tenant")
  })

  test.each<[string, (team: Team, env: Record<string, string>) => unknown, RegExp]>([
    [
      "another master key",
      (_, env) => writeFileSync(env.DEX_HUB_MASTER_KEY_FILE!, "ab".repeat(32)),
      /does not open the keys of tenant \d+/,
    ],
    ["a key that others can read", (_, env) => chmodSync(env.DEX_HUB_MASTER_KEY_FILE!, 0o644), /Run: chmod 600 /],
    [
      "a table without its wall",
      (team) => team.asOwner("alter table hub.audit no force row level security"),
      /hub\.audit has no row-level security/,
    ],
    [
      "a folder that is none",
      (_, env) => {
        env.DEX_HUB_DATA = env.DEX_HUB_MASTER_KEY_FILE!
      },
      /cannot be written to/,
    ],
    ["older tables", (team) => team.asOwner("delete from hub.migration"), /Run: dex-hub migrate/],
    [
      "newer tables that are without something",
      (team) => team.asOwner("insert into hub.migration (version, least_hub) values (1000, 1000)"),
      /Install a newer dex-hub/,
    ],
    [
      "the settings of several nodes",
      (_, env) => {
        env.DEX_HUB_NODE = "two"
        env.DEX_HUB_NODE_URL = "http://10.0.0.2:8787"
      },
      /DEX_HUB_NODE and DEX_HUB_NODE_URL no longer have an effect: .* let your proxy send requests to all hubs/,
    ],
    [
      "changes that are not indexed",
      (team) => team.asOwner("update hub.feed set seq = 5000"),
      /is 5000 changes behind/,
    ],
  ])("finds %s, and says what to do", async (_, make, expected) => {
    const team = await checkedTeam()
    const env = hubEnv(team)
    await make(team, env)
    const { code, lines } = await check(env)
    expect(problems(lines)).toEqual([expect.stringMatching(expected)])
    expect(code).toBe(1)
  })

  test("finds a disk that is nearly full", async ({ skip }) => {
    const disk = smallDisk(100 << 10)
    if (!disk) return skip()
    const { code, lines } = await check(hubEnv(await checkedTeam(), { DEX_HUB_DATA: disk }))
    expect(problems(lines).join()).toContain(
      `${disk} has 0.1 GB left. Free some space, or set DEX_HUB_DATA to a folder on another disk.`,
    )
    expect(code).toBe(1)
  })

  test("finds a role that can get around the walls", async () => {
    const team = await checkedTeam()
    onTestFinished(async () => void (await team.asOwner("alter role dex_hub_index nobypassrls")))
    await team.asOwner("alter role dex_hub_index bypassrls")
    expect(problems((await check(hubEnv(team))).lines)).toEqual([
      "PROBLEM  dex_hub_index can bypass row-level security. Run: alter role dex_hub_index nosuperuser nobypassrls",
    ])
  })

  test("reports missing tables, an unreachable PostgreSQL and a refused login", async () => {
    const team = await checkedTeam()
    const empty = await newDatabase({ migrated: false })
    const without = await check(hubEnv(team, { DEX_HUB_DATABASE_URL: empty.app, DEX_HUB_INDEX_URL: empty.index }))
    expect(problems(without.lines)).toEqual([expect.stringContaining("do not exist. Run: dex-hub migrate")])
    const nowhere = await check(hubEnv(team, { DEX_HUB_DATABASE_URL: `postgresql://x@/hub?host=${tempDir()}` }))
    expect(problems(nowhere.lines)).toEqual([expect.stringContaining("PostgreSQL does not answer (ENOENT)")])
    expect(nowhere.code).toBe(1)
    const stranger = await check(hubEnv(team, { DEX_HUB_DATABASE_URL: team.app.replace("dex_hub_app", "nobody_here") }))
    expect(problems(stranger.lines)).toEqual([expect.stringMatching(/refuses the login.*\(28000\).*`dex-hub migrate`/)])
  })
})
