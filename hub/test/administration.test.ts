import { describe, expect, test } from "vitest"
import { type AdminRoute, adminRoutes } from "../../src/hub-client/admin-routes.ts"
import { firstOperator, redeemOperatorCode } from "../src/store/operators.ts"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { API, share } from "./support/share.ts"
import { newMember, newProject, newTenant } from "./support/team.ts"

type Answer = { status: number; body: unknown }
const SECRET = "zebrafinch"

/** One request for each route. What it changes is added anew for each caller. */
const REQUESTS: Record<string, [path: string, body?: object]> = {
  "tenant add": ["/v1/admin/tenants", { tenant: "made" }],
  "tenant list": ["/v1/admin/tenants"],
  "tenant admin": ["/v1/admin/tenants/empty/admins", { name: "boss" }],
  "tenant quota": ["/v1/admin/tenants/acme/quota", { size: "50GB" }],
  "tenant login": ["/v1/admin/tenants/acme/login", { issuer: "https://login.example.com", domain: "example.com" }],
  "tenant no-login": ["/v1/admin/tenants/acme/login"],
  "tenant search": ["/v1/admin/tenants/acme/search", { engine: "files" }],
  "tenant disk-gone": ["/v1/admin/tenants/acme/disks/lost"],
  "tenant delete": ["/v1/admin/tenants/empty"],
  "tenant keep": ["/v1/admin/tenants/empty/keep", {}],
  "tenant receipts": ["/v1/admin/tenant-receipts"],
  "operator list": ["/v1/admin/operators"],
  "operator add": ["/v1/admin/operators", { name: "otto" }],
  "operator remove": ["/v1/admin/operators/other"],
  "operator audit": ["/v1/admin/operators-audit"],
  health: ["/v1/admin/health"],
  "member list": ["/v1/admin/members"],
  "member add": ["/v1/admin/members", { name: "gus" }],
  "member invite": ["/v1/admin/members/bob/invitations", {}],
  "member role": ["/v1/admin/members/hal/role", { role: "auditor" }],
  "member quota": ["/v1/admin/members/ann/quota", { size: "2GB" }],
  "member disable": ["/v1/admin/members/hal"],
  "service add": ["/v1/admin/services", { name: "ci", project: API }],
  "token list": ["/v1/admin/tokens"],
  "token revoke": ["/v1/admin/tokens/TOKEN"],
  "project list": ["/v1/admin/projects"],
  "project keep": [`/v1/admin/projects/${encodeURIComponent(API)}/keep`, { days: "90" }],
  "project owner": [`/v1/admin/projects/${encodeURIComponent(API)}/owner`, { name: "ann" }],
  grant: [`/v1/admin/projects/${encodeURIComponent(API)}/members/hal`, { level: "read" }],
  "rule list": ["/v1/admin/rules"],
  "rule add": ["/v1/admin/rules/git.test%2Fother%2F*", {}],
  "rule remove": ["/v1/admin/rules/git.test%2Fother%2F*"],
  "group list": ["/v1/admin/groups"],
  "group grant": [`/v1/admin/groups/engineers/projects/${encodeURIComponent(API)}`, {}],
  "group revoke": [`/v1/admin/groups/engineers/projects/${encodeURIComponent(API)}`],
  "group role": ["/v1/admin/groups/security/role", { role: "auditor" }],
  audit: ["/v1/admin/audit"],
  "receipt list": ["/v1/admin/receipts"],
  "glass list": ["/v1/admin/glass"],
}

async function place() {
  const people = await hubWithPeople()
  const { team, tenant, ann, hub, tokens } = people
  await share(team, ann, "secret", [`the ${SECRET} sings`], { visibility: "private" })
  const other = await newTenant(team, "bolt")
  await newTenant(team, "empty")
  const zoe = await newMember(team, other, "zoe", "admin")
  await newProject(team, other, "git.test/bolt/hidden", { own: [zoe] })
  const service = await newMember(team, tenant, "robot", "service")
  const hal = await newMember(team, tenant, "hal")
  const operatorToken = async (name: string) => {
    const code = await firstOperator(team.asOwner, name, false)
    if ("code" in code) return (await redeemOperatorCode(team.db, code.code)).token
    throw new Error("an operator can log in already")
  }
  await team.asOwner("delete from hub.operator")
  const operator = await operatorToken("olga")
  await team.asOwner("insert into hub.operator (name) values ('other')")
  const all: Record<string, string | undefined> = {
    ...{ operator, admin: tokens.eve, auditor: tokens.fay, member: tokens.ann },
    service: await tokenFor(team, service, ["read"]),
    "another tenant's admin": await tokenFor(team, zoe, ["push", "read", "admin"]),
    nobody: undefined,
    "a made-up operator": "dexo_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
    "an admin without the scope": await tokenFor(team, people.eve, ["push", "read"]),
  }
  const call = async (who: string, command: string): Promise<Answer> => {
    const route = (adminRoutes as Record<string, AdminRoute>)[command]!
    const [path, body] = REQUESTS[command]!
    const id = path.includes("TOKEN")
      ? (await team.asOwner<{ id: string }>("select id from hub.token where member = $1", [hal.member]))[0]?.id
      : ""
    return request(hub.url, all[who], route.method, path.replace("TOKEN", String(id)), body)
  }
  /** What every caller finds: the same rows. */
  const reset = async () => {
    await team.asOwner("delete from hub.member where name in ('gus', 'ci', 'boss')")
    await team.asOwner("delete from hub.feed where tenant in (select id from hub.tenant where slug = 'made')")
    await team.asOwner("delete from hub.tenant where slug = 'made'")
    await team.asOwner("delete from hub.group_grant")
    await team.asOwner("insert into hub.group_grant select tenant, 'engineers', id, 'read' from hub.project")
    await team.asOwner("delete from hub.project_rule")
    await team.asOwner("insert into hub.project_rule values ($1, 'git.test/other/*')", [tenant])
    await team.asOwner(
      "insert into hub.word_copy (tenant, node, name) values ($1, 'n', 'lost') on conflict do nothing",
      [tenant],
    )
    await team.asOwner("update hub.member set role = 'member', disabled_at = null where name = 'hal'")
    await team.asOwner("delete from hub.token where member = $1", [hal.member])
    await tokenFor(team, hal)
    await team.asOwner("delete from hub.operator_code")
    await team.asOwner("update hub.tenant set delete_at = null")
    await team.asOwner("update hub.operator set disabled_at = null")
  }
  return { ...people, call, reset, all, other, zoe, hal }
}

/** Who may do what. Everybody else gets 403, and a caller without a token 401. */
const MAY: Record<string, string[]> = {
  operator: ["operator"],
  admin: ["admin", "another tenant's admin"],
  auditor: ["admin", "auditor", "another tenant's admin"],
}

describe.skipIf(!hasPostgres)("administration", () => {
  test("each command is for its role only, whoever else tries", async () => {
    const { call, reset, all } = await place()
    expect(Object.keys(REQUESTS).sort()).toEqual(Object.keys(adminRoutes).sort())
    for (const [command, { who: role }] of Object.entries(adminRoutes))
      for (const who of Object.keys(all)) {
        await reset()
        const { status, body } = await call(who, command)
        const isUnknown = who === "nobody" || who === "a made-up operator"
        if (!MAY[role]!.includes(who)) expect([command, who, status]).toEqual([command, who, isUnknown ? 401 : 403])
        // Another tenant's admin changes nothing here: what the command names does not exist there.
        else if (who === "another tenant's admin") expect([command, who, status < 500]).toEqual([command, who, true])
        else expect([command, who, status, body]).toEqual([command, who, 200, expect.anything()])
      }
  }, 300_000)

  test("another tenant's admin sees and changes nothing of a tenant, in text and numbers", async () => {
    const { team, tenant, call, reset, zoe } = await place()
    await reset()
    const rows = async () => {
      const tables = [
        "member",
        "token",
        "project",
        "project_grant",
        "project_rule",
        "group_grant",
        "invitation",
        "receipt",
      ]
      const all = tables.map((table) => team.asOwner(`select * from hub.${table} where tenant = $1`, [tenant]))
      return JSON.stringify(await Promise.all(all))
    }
    const before = await rows()
    const answers: string[] = []
    for (const [command, { who, method }] of Object.entries(adminRoutes)) {
      if (who === "operator") continue
      const { status, body } = await call("another tenant's admin", command)
      answers.push(JSON.stringify(body))
      const isOwn = ["member add", "group role", "rule add", "rule remove"].includes(command)
      if (method !== "GET" && !isOwn) expect([command, status]).toEqual([command, expect.toBeOneOf([404, 409])])
    }
    expect(await rows()).toBe(before)
    for (const name of ["ann", "bob", "eve", "hal", API, "secret", SECRET])
      expect(answers.join()).not.toContain(`"${name}"`)
    // The same by row-level security alone.
    for (const table of [
      "member",
      "token",
      "project",
      "project_grant",
      "project_rule",
      "group_grant",
      "receipt",
      "break_glass",
      "audit",
    ]) {
      const seen = await team.db.asAdmin(zoe, (query) =>
        query<{ n: number }>(`select count(*)::int as n from hub.${table} where tenant = ${tenant}`),
      )
      expect([table, seen]).toEqual([table, [{ n: 0 }]])
    }
    for (const change of [
      `insert into hub.member (tenant, name, role) values (${tenant}, 'x', 'admin')`,
      `insert into hub.project_rule (tenant, pattern) values (${tenant}, 'a/*')`,
      `insert into hub.audit (tenant, member, action) values (${tenant}, 1, 'read')`,
    ])
      await expect(team.db.asAdmin(zoe, (query) => query(change))).rejects.toThrow(/row-level security/)
  })

  test("neither an operator nor an admin reads text or keys, even with their own statements", async () => {
    const { team, eve } = await place()
    const [operator] = await team.asOwner<{ id: number }>("select id from hub.operator where name = 'olga'")
    for (const statement of [
      "select * from hub.conversation",
      "select * from hub.chunk",
      "select * from hub_key.conversation_key",
      "select wrapped_key from hub.tenant",
      "select hash from hub.token",
      "select hash from hub.operator_token",
      "select hub.apply_groups(1, 1)",
      "select hub.add_operator_code('x', '', 1)",
    ]) {
      await expect(team.db.asAdmin(eve, (query) => query(statement))).rejects.toThrow(/permission denied/)
      await expect(team.db.asOperator(operator!.id, (query) => query(statement))).rejects.toThrow(/permission denied/)
    }
    const members = await team.db.asOperator(operator!.id, (query) => query("select from hub.member"))
    expect(members).toEqual([])
    for (const call of [
      "hub.add_tenant('x', '')",
      "hub.tenant_counts()",
      "hub.operator_end('olga')",
      "hub.invite_admin(1, 'x', '', 1)",
    ])
      await expect(team.db.asAdmin(eve, (query) => query(`select ${call}`))).rejects.toThrow(/only an operator/)
    await expect(team.db.asOperator(operator!.id, (query) => query("select hub.apply_group('x')"))).rejects.toThrow(
      /only an admin/,
    )
    // The roles of members can do nothing of this.
    for (const call of ["hub.begin_as_operator(1)", "hub.redeem_operator_code('', '', 1)", "hub.operator_with('')"])
      await expect(team.db.as(eve, (query) => query(`select ${call}`))).rejects.toThrow(/permission denied/)
  })

  test("an admin lets neither themselves in nor gets the token of another person", async () => {
    const { team, tenant, eve, ann, admin, as, call } = await place()
    await share(team, ann, "shared", [`another ${SECRET}`])
    const refused = "themselves"
    expect((await admin("grant", "eve", API, "--level", "read")).stderr).toContain(refused)
    expect((await admin("project", "owner", API, "eve")).stderr).toContain(refused)
    expect((await as("eve", "POST", "/v1/tools/search", { query: SECRET })).body).toMatchObject({ total: 0 })
    // What they did not do is not half done.
    expect(
      await team.asOwner(
        "select m.name from hub.project_grant g join hub.member m on m.id = g.member where g.level = 'own' and g.tenant = $1",
        [tenant],
      ),
    ).toEqual([{ name: "ann" }])
    const token =
      "insert into hub.token (hash, tenant, member, kind, scopes, name) values ('x', $1, $2, 'personal', '{read}', 'x')"
    await expect(team.db.asAdmin(eve, (query) => query(token, [tenant, ann.member]))).rejects.toThrow(/row-level/)
    // Somebody who logs in with the provider gets no code, and one that they had ends.
    const { body } = await call("admin", "member invite")
    await team.asOwner("update hub.member set subject = 'x' where name = 'bob'")
    expect(await call("admin", "member invite")).toMatchObject({ status: 409, body: { error: { code: "login" } } })
    const { code } = body as { code: string }
    expect((await as("ann", "POST", "/v1/login/invitation", { code })).status).toBe(403)
    for (const words of [
      ["member", "disable", "eve"],
      ["member", "role", "eve", "member"],
    ])
      expect((await admin(...words)).stderr).toContain("Ask another admin")
  })

  test("a changed role ends the tokens with the old one, and a disabled member has none", async () => {
    const { admin, team, hal, call: _, hub } = await place()
    const token = await tokenFor(team, hal)
    const me = async () => (await request(hub.url, token, "GET", "/v1/me")).status
    expect(await me()).toBe(200)
    expect((await admin("member", "role", "hal", "admin")).stdout).toContain("hal is an admin")
    expect(await me()).toBe(401)
    expect((await admin("member", "disable", "hal")).code).toBe(0)
    expect((await admin("member", "invite", "hal")).stderr).toContain("has left")
  })
})

describe.skipIf(!hasPostgres)("a one-time code", () => {
  test("gives one operator's token, even if many send it at once, and not late", async () => {
    const { team, operator, hub, call } = await hubWithPeople()
    const invited = (await operator("operator", "add", "otto")).stdout.split("\n")[0]!
    const redeem = (code: unknown) => call(undefined, "POST", "/v1/admin/login", { code })
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeem(invited)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 403)])
    const late = (await operator("operator", "add", "otto")).stdout.split("\n")[0]!
    await team.asOwner("update hub.operator_code set expires_at = now() where used_at is null")
    for (const wrong of [late, "dexc_x", "", 5, null, undefined, { a: 1 }, "' or true --"])
      expect([wrong, (await redeem(wrong)).status]).toEqual([wrong, 403])
    // A member's invitation is no operator's code, and the other way round.
    await operator("tenant", "add", "bolt")
    const code = (await operator("tenant", "admin", "bolt", "zoe")).stdout.split("\n")[0]!
    expect((await redeem(code)).status).toBe(403)
    const next = (await operator("operator", "add", "otto")).stdout.split("\n")[0]!
    expect((await call(undefined, "POST", "/v1/login/invitation", { code: next })).status).toBe(403)
    expect((await call(undefined, "POST", "/v1/login/invitation", { code })).status).toBe(200)
    expect(hub.log.join("\n")).not.toMatch(/dex[ochi]_[\w-]{20}/)
  })

  test("is printed by `dex-hub init` while nobody can log in, and again if all are locked out", async () => {
    const { team, owner, operator, hub } = await hubWithPeople()
    expect(await owner("init")).toMatchObject({ code: 1, stderr: expect.stringContaining("olga can log in already") })
    const again = await owner("init", "--locked-out")
    expect(again.stdout).toMatch(/^dexc_/)
    expect((await operator("tenant", "list")).stderr).toContain("does not accept your token")
    const { token } = await redeemOperatorCode(team.db, again.stdout.split("\n")[0]!)
    expect((await request(hub.url, token, "GET", "/v1/admin/tenants")).status).toBe(200)
    const lines = await team.asOwner("select operator, action, target from hub.operator_audit order by id")
    expect(lines).toEqual([
      { operator: null, action: "operator_code", target: "olga" },
      { operator: "olga", action: "login", target: "olga" },
      { operator: null, action: "locked_out", target: "operator" },
      { operator: null, action: "operator_code", target: "operator" },
      { operator: "operator", action: "login", target: "operator" },
    ])
  })
})

describe.skipIf(!hasPostgres)("an operator", () => {
  test("adds a tenant and its first admin, who adds people; a second admin is the first one's to add", async () => {
    const { operator, call, team } = await hubWithPeople()
    expect((await operator("tenant", "add", "bolt")).stdout).toContain("Added bolt.")
    expect((await operator("tenant", "add", "bolt")).stderr).toContain("already a tenant bolt")
    const invited = await operator("tenant", "admin", "bolt", "zoe")
    const code = invited.stdout.split("\n")[0]!
    const { token } = (await call(undefined, "POST", "/v1/login/invitation", { code })).body as { token: string }
    expect((await call(token, "POST", "/v1/admin/members", { name: "kim", role: "auditor" })).status).toBe(200)
    expect((await operator("tenant", "admin", "bolt", "mallory")).stderr).toContain("has an admin who can log in")
    await team.asOwner(
      "update hub.token set revoked_at = now() where member = (select id from hub.member where name = 'zoe')",
    )
    expect((await operator("tenant", "admin", "bolt", "kim")).stderr).toContain("already a member kim")
    expect((await operator("tenant", "admin", "bolt", "mary")).code).toBe(0)
    const [line] = JSON.parse(`[${(await operator("tenant", "list")).stdout.trim().split("\n").join(",")}]`).filter(
      ({ name }: { name: string }) => name === "bolt",
    )
    expect(line).toMatchObject({ members: 3, admins: 2, conversations: 0, search: "files" })
    const audit = (await operator("operator", "audit")).stdout
    expect(audit).toMatch(/"action":"tenant_add".*"operator":"olga","tenant":"bolt"/)
    expect(audit).toMatch(/"about":"mary"/)
    expect((await operator("operator", "remove", "olga")).stderr).toContain("Add another operator first")
  })

  test("sends nothing that is stored or run as something else, and no huge body", async () => {
    const { operator, admin, call, tokens, team, hub } = await hubWithPeople()
    const evil = [
      "'; drop table hub.member; --",
      "a\0b",
      "\ud800",
      "../..",
      "a\r\nX-Evil: 1",
      "%00",
      "x".repeat(5000),
      "{}",
      "<script>",
    ]
    for (const name of evil) {
      expect((await operator("tenant", "add", name)).code).toBe(2)
      expect((await operator("tenant", "quota", name, "1GB")).code).toBe(2)
      expect((await admin("member", "add", name)).code).toBe(2)
      expect((await admin("rule", "add", name)).code).toBe(2)
      for (const path of ["members", "projects", "rules", "groups"])
        expect(
          (
            await call(tokens.eve, "PUT", `/v1/admin/${path}/${encodeURIComponent(name.toWellFormed())}/role`, {
              role: name,
            })
          ).status,
        ).toBeLessThan(500)
    }
    for (const body of ["{", "[]", "null", "5", '"x"', '{"name":"a","name2":"b"}', '{"__proto__":{"name":"gus"}}']) {
      const { status } = await request(hub.url, tokens.eve, "POST", "/v1/admin/members", Buffer.from(body))
      expect([body, status]).toEqual([body, 400])
    }
    const huge = Buffer.from(JSON.stringify({ name: "x".repeat(70_000) }))
    expect((await request(hub.url, tokens.eve, "POST", "/v1/admin/members", huge)).status).toBe(413)
    for (const [path, wrong] of [
      ["audit", "limit=0"],
      ["audit", "limit=1e9"],
      ["audit", "after=x"],
      ["audit", "after=99999999999999999999-1"],
      ["audit", "after=9223372036854775807-1"],
      ["audit", "what=1"],
      ["tokens", "limit=1"],
    ])
      expect([wrong, (await call(tokens.eve, "GET", `/v1/admin/${path}?${wrong}`)).status]).toEqual([wrong, 400])
    expect(await team.asOwner("select count(*)::int as n from hub.member")).toEqual([{ n: 4 }])
    expect(hub.log.filter((line) => line.includes('"level":"error"'))).toEqual([])
  })
})

describe.skipIf(!hasPostgres)("the audit log, followed", () => {
  test("misses no line that is committed late", async () => {
    const { team, tenant, call, tokens } = await hubWithPeople()
    const page = async (after = "") =>
      (await call(tokens.fay, "GET", `/v1/admin/audit?limit=1000${after && `&after=${after}`}`)).body as {
        lines: { target?: string }[]
        next: string
      }
    const add = (target: string) =>
      `insert into hub.audit (tenant, action, target) values (${tenant}, 'read', '${target}')`
    let late: Promise<unknown> | undefined
    let seen: { lines: { target?: string }[]; next: string } | undefined
    // The first line gets its number first, and is committed last.
    await team.db.as({ tenant, member: 1, role: "member", name: "ann" }, async (query) => {
      await query("insert into hub.audit (tenant, member, action, target) values ($1, 1, 'read', 'early')", [tenant])
      await team.asOwner(add("late"))
      seen = await page()
      late = Promise.resolve()
    })
    await late
    const next = await page(seen!.next)
    expect(
      [...seen!.lines, ...next.lines].map(({ target }) => target).filter((one) => one === "early" || one === "late"),
    ).toEqual(["early", "late"])
    expect((await page(next.next)).lines).toEqual([])
  })
})

describe.skipIf(!hasPostgres)("dex-hub serve", () => {
  test("administers without the owner's address, and warns if it gets one", async () => {
    const { team, tokens } = await hubWithPeople()
    const env = hubEnv(team)
    expect(env).not.toHaveProperty("DEX_HUB_OWNER_URL")
    const { url, log } = await startHub(env)
    expect((await request(url, tokens.eve, "POST", "/v1/admin/members", { name: "gus" })).status).toBe(200)
    expect(log.join("\n")).not.toContain("OWNER")
    const careless = await startHub({ ...env, DEX_HUB_OWNER_URL: "postgresql://x@127.0.0.1:1/nowhere" })
    expect((await request(careless.url, tokens.eve, "GET", "/v1/admin/members")).status).toBe(200)
    await expect.poll(() => careless.log.join("\n")).toContain("does not use DEX_HUB_OWNER_URL")
    const { DEX_HUB_ADMIN_URL: _, ...without } = env
    const old = await startHub(without)
    expect(await request(old.url, tokens.eve, "GET", "/v1/admin/members")).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringContaining("DEX_HUB_ADMIN_URL") } },
    })
  })

  test("old commands say the new ones", async () => {
    const { owner } = await hubWithPeople()
    for (const words of [["member", "add", "x", "--tenant", "acme", "--role", "admin"], ["invite", "x"], ["audit"]])
      expect(await owner(...words)).toMatchObject({ code: 2, stderr: expect.stringContaining("`dex hub admin") })
  })
})
