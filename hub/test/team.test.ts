import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { DEX, dex } from "../../test/support/dex.ts"
import { claudeSession } from "../../test/support/home.ts"
import { tempDir } from "../../test/support/temp.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, startHub, tokenFor } from "./support/server.ts"
import { newMember, newTeam, newTenant } from "./support/team.ts"

const KEY = "git.test/acme/api"
const ID = "11111111-1111-4222-8333-444444444444"

describe.skipIf(!hasPostgres)("a second person", () => {
  test("finds, reads and lists what a colleague shared, but only after they were granted it", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const [ann, bob] = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
    const hub = await startHub(hubEnv(team))
    const [home, other] = [tempDir(), tempDir()]
    const project = join(home, "code", "api")
    mkdirSync(project, { recursive: true })
    claudeSession(home, {
      id: ID,
      cwd: project,
      start: "2026-10-02T10:00:00Z",
      turns: [{ user: "why does the refresh token race", assistant: "The mutex is released too early." }],
    })
    const at = (where: string) => async (args: string[], input?: string) => dex(where, args, {}, DEX, input, where)
    const asAnn = (args: string[], input?: string) => dex(home, args, {}, DEX, input, project)
    const asBob = at(other)
    expect((await asBob(["search", "refresh", "--team"])).stderr).toMatch(/not logged in to a hub.*dex hub login/)
    expect((await asAnn(["sync"])).code).toBe(0)
    expect((await asAnn(["hub", "login", hub.url, "--token-stdin"], await tokenFor(team, ann))).code).toBe(0)
    expect((await asAnn(["hub", "share", "--name", KEY, "--yes"])).code).toBe(0)
    expect((await asBob(["hub", "login", hub.url, "--token-stdin"], await tokenFor(team, bob))).code).toBe(0)
    const nothing = await asBob(["search", "refresh token race", "--team"])
    expect([nothing.code, nothing.stdout + nothing.stderr]).toEqual([
      1,
      expect.stringContaining("Nothing is shared with you"),
    ])
    await team.asOwner(
      "insert into hub.project_grant (tenant, project, member, level) select $1, id, $2, 'read' from hub.project",
      [tenant, bob.member],
    )
    await expect.poll(async () => (await asBob(["search", "refresh token race", "--team"])).code).toBe(0)
    const found = await asBob(["search", "refresh token race", "--team"])
    expect(found.stdout).toContain("Why does the refresh token race")
    expect(found.stdout).toContain(`ann/claude_code:${ID}`)
    const shown = await asBob(["show", `ann/claude_code:${ID}`])
    expect(shown.stdout).toContain("The mutex is released too early.")
    expect((await asBob(["list", "--team"])).stdout).toContain("refresh token race")
    expect((await asBob(["timeline", `ann/claude_code:${ID}#1`])).stdout).toContain("mutex")
    // This machine has nothing of it.
    expect((await asBob(["search", "refresh token race"])).code).toBe(1)
  })
})
