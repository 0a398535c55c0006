import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { createFollower } from "../src/search/follow.ts"
import { deleteTenantPart } from "../src/store/administration.ts"
import { rewriteForgottenKeys } from "../src/store/forgotten-keys.ts"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, startHub } from "./support/server.ts"
import { API, share } from "./support/share.ts"
import { newMember, newProject, newTenant, type Team } from "./support/team.ts"

const TABLES = `select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and a.atttypid = 'int'::regtype
  where n.nspname in ('hub', 'hub_key') and c.relkind = 'r' order by 1`

async function rowsOf(team: Team, tenant: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name } of await team.asOwner<{ name: string }>(TABLES)) {
    const [row] = await team.asOwner<{ n: number }>(`select count(*)::int as n from ${name} where tenant = $1`, [
      tenant,
    ])
    if (row!.n > 0) counts[name] = row!.n
  }
  return counts
}

const all = async (team: Team) => {
  while (await deleteTenantPart(team.db));
}

describe.skipIf(!hasPostgres)("a tenant that an operator deletes", () => {
  test("works for 7 days, can be taken back, and is then gone: rows, keys, index; a receipt stays", async () => {
    const { team, tenant, ann, bob, eve, operator, as, found } = await hubWithPeople()
    const other = await newTenant(team, "bolt")
    const zoe = await newMember(team, other, "zoe")
    await newProject(team, other, API, { own: [zoe] })
    await share(team, ann, "race", ["why does the zebrafinch sing"])
    await share(team, bob, "more", ["a zebrafinch again"], { visibility: "private" })
    await share(team, zoe, "kept", ["another zebrafinch"])
    await as("eve", "POST", "/v1/break-glass", { ref: "bob/claude_code:more", reason: "incident 42" })
    const data = tempDir()
    const follower = createFollower(team.db, data)
    while (!(await follower.step()));
    const kept = await rowsOf(team, other)

    expect((await operator("tenant", "delete", "acme")).stdout).toMatch(/^acme is deleted on .* works until then/)
    await all(team)
    await found("ann", "zebrafinch", 1)
    expect((await operator("tenant", "keep", "acme")).stdout).toBe("acme is not deleted.\n")
    const soon = "update hub.tenant set delete_at = now() + interval '1 second' where slug = 'acme'"
    await operator("tenant", "delete", "acme")
    const [row] = await team.asOwner<{ days: number }>(
      "select extract(epoch from delete_at - now()) / 86400 as days from hub.tenant where slug = 'acme'",
    )
    expect(Number(row!.days)).toBeCloseTo(7, 2)
    // Asked again, it is not put off.
    await team.asOwner(soon)
    await operator("tenant", "delete", "acme")
    await team.asOwner(soon.replace("+", "-"))
    expect((await operator("tenant", "keep", "acme")).stderr).toContain("is being deleted")

    // After the first part, nobody can read anything, even if the hub is stopped then.
    expect(await deleteTenantPart(team.db)).toBe(true)
    expect(await team.asOwner("select from hub_key.conversation_key where tenant = $1", [tenant])).toEqual([])
    for (const who of ["ann", "eve"] as const) expect((await as(who, "GET", "/v1/me")).status).toBe(401)
    await expect(team.db.as(eve, (query) => query("select 1"))).rejects.toMatchObject({ status: 401 })
    await all(team)
    expect(await rowsOf(team, tenant)).toEqual({})
    expect(await rowsOf(team, other)).toEqual(kept)
    expect(existsSync(join(data, `team-${tenant}`))).toBe(true)
    while (!(await follower.step()));
    expect([existsSync(join(data, `team-${tenant}`)), existsSync(join(data, `team-${other}`))]).toEqual([false, true])
    follower.close()
    const receipt = async () => JSON.parse((await operator("tenant", "receipts")).stdout) as Record<string, unknown>
    expect(await receipt()).toMatchObject({
      name: "acme",
      members: 4,
      conversations: 2,
      rows_gone_at: expect.any(String),
    })
    expect(await receipt()).not.toHaveProperty("key_gone_at")
    await expect.poll(async () => (await rewriteForgottenKeys(team.keys)).state).toBe("done")
    expect(await receipt()).toMatchObject({ key_gone_at: expect.any(String) })
    // What operators did is kept, and nothing else names it.
    expect((await operator("operator", "audit")).stdout).toMatch(/"action":"tenant_delete".*"tenant":"acme"/)

    // A new tenant with this name has another key.
    const again = await newTenant(team, "acme")
    const ann2 = await newMember(team, again, "ann")
    await newProject(team, again, API, { own: [ann2] })
    await share(team, ann2, "race", ["a new zebrafinch"])
    const wrapped = await team.asOwner("select wrapped from hub_key.conversation_key where tenant = $1", [again])
    const fresh = (await import("../src/store/keyring.ts")).openKeyring(team.masterKey)
    const [stored] = await team.asOwner<{ slug: string; wrapped_key: Buffer }>(
      "select slug, wrapped_key from hub.tenant where id = $1",
      [again],
    )
    expect(fresh.tenantKey(stored!).conversationKey((wrapped[0] as { wrapped: Buffer }).wrapped)).toHaveLength(32)
  })

  test("is deleted by `dex-hub serve`, without the owner's address, like what projects no longer keep", async () => {
    const { team, tenant, ann, eve, admin } = await hubWithPeople()
    const other = await newTenant(team, "bolt")
    await share(team, ann, "old", ["an old zebrafinch"])
    await team.asOwner("update hub.conversation set ended_at = 1")
    await admin("project", "keep", API, "30")
    await team.asOwner("update hub.tenant set delete_at = now() where id = $1", [other])
    const { log } = await startHub(hubEnv(team))
    const gone = () => team.asOwner("select from hub.conversation where tenant = $1", [tenant])
    await expect.poll(gone).toEqual([])
    await expect.poll(() => rowsOf(team, other)).toEqual({})
    await expect.poll(() => log.join("\n")).toContain('"event":"forget_keys","state":"done","receipts":2')
    expect(log.filter((line) => line.includes('"level":"error"'))).toEqual([])
    // Nobody can use its functions for what has not expired.
    await share(team, ann, "young", ["a young zebrafinch"])
    await team.asOwner("update hub.conversation set ended_at = null")
    const [young] = await team.asOwner<{ id: number }>("select id from hub.conversation")
    const forget = "select hub.forget_expired($1, $2) as n"
    expect(await team.db.asIndex(tenant, (query) => query(forget, [[young!.id], [Buffer.alloc(32)]]))).toEqual([
      { n: 0 },
    ])
    for (const call of ["hub.forget_expired('{1}', '{}')", "hub.delete_tenant_part(1)", "hub.remove_abandoned()"]) {
      await expect(team.db.as(ann, (query) => query(`select ${call}`))).rejects.toThrow(/permission denied/)
      await expect(team.db.asAdmin(eve, (query) => query(`select ${call}`))).rejects.toThrow(/permission denied/)
    }
  })
})
