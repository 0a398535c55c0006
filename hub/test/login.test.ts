import { createHash } from "node:crypto"
import { describe, expect, test } from "vitest"
import { addMember } from "../src/store/people.ts"
import { hubWithLogin, verified } from "./support/login.ts"
import { HUB_URL, hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { approve } from "./support/provider.ts"
import { API } from "./support/share.ts"

describe.skipIf(!hasPostgres)("logging in with an identity provider", () => {
  test("creates a member at the first login, and finds them at the next", async () => {
    const people = { "sub-1": verified("Gus.Li@example.com", { name: "Gus Li" }), "sub-2": verified("ann@example.com") }
    const { team, begin, ask, tokenOf, me, call } = await hubWithLogin(people)
    expect((await call(undefined, "GET", "/v1/login")).body).toEqual({ methods: ["device", "token", "invitation"] })
    const begun = await begin()
    expect((await ask(begun)).body).toEqual({ state: "waiting" })
    await approve(begun.verification_uri_complete!, "sub-1")
    const token = ((await ask(begun)).body as { token: string }).token
    expect(await me(token)).toMatchObject({
      tenant: "acme",
      member: { name: "gus.li", role: "member" },
      scopes: ["push", "read"],
    })
    // The code has been used.
    expect((await ask(begun)).status).toBe(410)
    expect(await me(await tokenOf("sub-1"))).toMatchObject({ member: { name: "gus.li" } })
    // Somebody else has this name here.
    expect(await me(await tokenOf("sub-2"))).toMatchObject({ member: { name: "ann-2" } })
    expect(await team.asOwner("select email, display from hub.member where name = 'gus.li'")).toEqual([
      { email: "Gus.Li@example.com", display: "Gus Li" },
    ])
    const days =
      "select kind, round(extract(epoch from expires_at - now()) / 86400)::int as days from hub.token where name = 'login'"
    expect(await team.asOwner(days)).toEqual(Array.from({ length: 3 }, () => ({ kind: "device", days: 90 })))
    const actions =
      "select action, target, count(*)::int as n from hub.audit where action in ('member_add', 'login') and member is not null group by 1, 2 order by 1, 2"
    expect(await team.asOwner(actions)).toEqual([
      { action: "login", target: "login", n: 3 },
      { action: "member_add", target: "ann-2", n: 1 },
      { action: "member_add", target: "gus.li", n: 1 },
    ])
  })

  test("recognises a member whom the operator added with the same verified address, and nobody else", async () => {
    const people = {
      "sub-1": verified("Ann.Lee@example.com"),
      "sub-2": verified("ann.lee@example.com"),
      typed: { email: "kim@example.com", email_verified: false },
      left: verified("left@example.com"),
      two: verified("two@example.com"),
      robot: verified("robot@example.com"),
    }
    const { team, tenant, operator, admin, call, logIn, tokenOf, me } = await hubWithLogin(people)
    const add = async (name: string, email: string, role = "member") => {
      const added = await admin("member", "add", name, "--role", role, "--email", email)
      expect(added).toMatchObject({ code: 0 })
      const code = added.stdout.split("\n")[0]
      const redeemed = await call(undefined, "POST", "/v1/login/invitation", { code })
      return (redeemed.body as { token: string }).token
    }
    const nameOf = async (token: string) => ((await me(token)) as { member: { name: string } }).member.name
    const first = await add("lee", "ann.lee@example.com", "admin")
    await admin("grant", "lee", API, "--level", "read")
    expect(await me(await tokenOf("sub-1"))).toMatchObject({
      member: { name: "lee", role: "admin" },
      scopes: ["push", "read", "admin"],
      projects: [{ key: API, level: "read" }],
    })
    expect([await nameOf(first), await nameOf(await tokenOf("sub-1"))]).toEqual(["lee", "lee"])
    // Somebody else at the provider with the same address.
    expect(await nameOf(await tokenOf("sub-2"))).toBe("ann.lee")

    await add("left", "left@example.com")
    await admin("member", "disable", "left")
    expect(await logIn("left")).toMatchObject({ status: 403, body: { error: { code: "login" } } })
    await add("back", "left@example.com")
    expect(await nameOf(await tokenOf("left"))).toBe("back")
    for (const name of ["two", "zwei"]) await add(name, "two@example.com")
    await addMember(team.asOwner, { tenant, name: "robot", role: "service", email: "robot@example.com" })
    for (const who of ["two", "robot"]) expect(await nameOf(await tokenOf(who))).toBe(`${who}-2`)
    await add("kim", "kim@example.com")
    expect(await operator("tenant", "login", "acme", "--everyone")).toMatchObject({ code: 0 })
    expect(await nameOf(await tokenOf("typed"))).not.toBe("kim")
    const found = "select target, detail->>'about' as about from hub.audit where detail->>'found_by' = 'email'"
    expect(await team.asOwner(found)).toEqual(["lee", "back"].map((about) => ({ target: "login", about })))
  })

  test("refuses people who have left, who are of another domain, or whose address is not verified", async () => {
    const people = {
      gus: verified("gus@example.com"),
      far: verified("far@example.com.evil.test"),
      near: verified("near@notexample.com"),
      typed: { email: "typed@example.com", email_verified: false },
      none: {},
    }
    const { team, operator, admin, logIn, tokenOf } = await hubWithLogin(people)
    await tokenOf("gus")
    expect((await admin("member", "disable", "gus")).code).toBe(0)
    for (const who of ["gus", "far", "near", "typed", "none"])
      expect([who, await logIn(who)]).toMatchObject([who, { status: 403, body: { error: { code: "login" } } }])
    expect(await team.asOwner("select count(*)::int as n from hub.member where subject is not null")).toEqual([
      { n: 1 },
    ])
    await operator("tenant", "login", "acme", "--group", "dex")
    expect((await logIn("far")).status).toBe(403)
    people.far = verified("far@example.com", { groups: ["dex"] })
    await tokenOf("far")
    await operator("tenant", "no-login", "acme")
    expect((await logIn("far")).status).toBe(403)
  })

  test("creates one member if a new person logs in many times at once", async () => {
    const { team, begin, ask } = await hubWithLogin({ gus: verified("gus@example.com") })
    const begun = await Promise.all(Array.from({ length: 8 }, begin))
    for (const one of begun) await approve(one.verification_uri_complete!, "gus")
    const answers = await Promise.all(begun.map(ask))
    expect(answers.map(({ status }) => status)).toEqual(begun.map(() => 200))
    expect(await team.asOwner("select name from hub.member where subject is not null")).toEqual([{ name: "gus" }])
  })

  test("reports a refusal, an expired code, a request to wait longer, and a provider that is down", async () => {
    const people = { gus: verified("gus@example.com") }
    const { provider, begin, ask, call, hub } = await hubWithLogin(people)
    const refused = await begin()
    await approve(refused.verification_uri_complete!, "gus", { refuse: true })
    expect(await ask(refused)).toMatchObject({ status: 403, body: { error: { code: "denied" } } })
    const slow = await begin()
    provider.calls.slowDowns = 1
    expect((await ask(slow)).body).toEqual({ state: "slow_down" })
    expect((await ask(slow)).body).toEqual({ state: "waiting" })
    for (const login of ["", "x", slow.login.slice(0, -8), undefined, 5])
      expect((await call(undefined, "POST", "/v1/login/device/token", { login })).status).toBe(400)
    await provider.stop()
    expect(await ask(slow)).toMatchObject({ status: 502 })
    expect(hub.log.join("\n")).toContain('"event":"identity_provider"')
  })

  test("limits how often the provider is asked about one login", async () => {
    const { provider, begin, ask } = await hubWithLogin({})
    const [begun, other] = [await begin(), await begin()]
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(begun)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(answers.map(({ body }) => body)).toContainEqual({ state: "slow_down" })
    expect(provider.calls.token).toBeLessThan(50)
    expect((await ask(other)).body).toEqual({ state: "waiting" })
  })

  test("says that a code which nobody typed has expired", async () => {
    const { begin, ask } = await hubWithLogin({}, { codeSeconds: 1 })
    const begun = await begin()
    await expect.poll(async () => (await ask(begun)).status).toBe(410)
  })

  test("shows a browser how to log in, on a page that loads and runs nothing", async () => {
    const { call } = await hubWithLogin({})
    const { status, body, headers } = await call(undefined, "GET", "/")
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=UTF-8"])
    expect(body).toContain(`dex hub login ${HUB_URL}`)
    expect(body).not.toMatch(/<script|<link|<img|<form|https?:\/\/(?!hub\.example\.com)/)
    const style = /<style>([\s\S]*)<\/style>/.exec(body as string)![1]!
    const hash = createHash("sha256").update(style).digest("base64")
    const policy = headers.get("content-security-policy")
    expect(policy).toContain(`default-src 'none'; style-src 'sha256-${hash}'`)
    expect(policy).not.toContain("unsafe")
  })

  test("is not offered without an identity provider, and neither is OAuth's metadata", async () => {
    const { call, mcp } = await hubWithPeople()
    expect((await call(undefined, "GET", "/v1/login")).body).toEqual({ methods: ["token", "invitation"] })
    expect((await call(undefined, "POST", "/v1/login/device")).status).toBe(401)
    expect((await call(undefined, "GET", "/.well-known/oauth-protected-resource/mcp")).status).toBe(404)
    const refused = await mcp(undefined, "dex_search", { query: "x" })
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, null])
  })
})

describe.skipIf(!hasPostgres)("groups", () => {
  test("give projects and roles at login, and remove only what they gave", async () => {
    const people = { gus: verified("gus@example.com", { groups: ["engineers", "security"] }) }
    const { team, admin, tokenOf, me } = await hubWithLogin(people)
    const WEB = "git.test/acme/web"
    const group = (...words: string[]) => admin("group", ...words)
    expect(await group("grant", "engineers", API, "--level", "write")).toMatchObject({ code: 0, stderr: "" })
    expect(await group("grant", "security", WEB, "--new", "--level", "read")).toMatchObject({ code: 0 })
    const projects = async (token: string) =>
      ((await me(token)) as { projects: { key: string; level: string }[] }).projects.map(({ key, level }) => [
        key,
        level,
      ])
    const token = await tokenOf("gus")
    const both = [
      [API, "write"],
      [WEB, "read"],
    ]
    expect(await projects(token)).toEqual(both)
    // Granted by name with a lower level than the group's: both stay.
    await admin("grant", "gus", API, "--level", "read")
    expect(await projects(token)).toEqual(both)
    // The role applies at once, and to the next token.
    expect(await group("role", "security", "admin")).toMatchObject({ code: 0 })
    expect(await me(token)).toMatchObject({ member: { role: "admin" }, scopes: ["push", "read"] })
    expect(await me(await tokenOf("gus"))).toMatchObject({ scopes: ["push", "read", "admin"] })
    expect(
      (await group("list")).stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { group: "engineers", project: API, level: "write" },
      { group: "security", project: WEB, level: "read" },
      { group: "security", role: "admin" },
    ])
    people.gus = verified("gus@example.com", { groups: [] })
    expect(await me(await tokenOf("gus"))).toMatchObject({ member: { role: "member" } })
    expect(await projects(token)).toEqual([[API, "read"]])
    people.gus = verified("gus@example.com", { groups: ["engineers"] })
    await tokenOf("gus")
    expect(await projects(token)).toEqual([[API, "write"]])
    expect(await group("revoke", "engineers", API)).toMatchObject({ code: 0 })
    expect(await projects(token)).toEqual([[API, "read"]])
    const others =
      "select count(*)::int as n from hub.project_grant g join hub.member m on m.tenant = g.tenant and m.id = g.member where m.subject is null"
    expect(await team.asOwner(others)).toEqual([{ n: 2 }])
  })

  test("do not change a role that a member was given by name", async () => {
    const people = { gus: verified("gus@example.com", { groups: ["security"] }) }
    const { team, admin, tokenOf, me } = await hubWithLogin(people)
    await tokenOf("gus")
    await team.asOwner("update hub.member set role = 'admin' where name = 'gus'")
    await admin("group", "role", "security", "auditor")
    expect(await me(await tokenOf("gus"))).toMatchObject({ member: { role: "admin" } })
    people.gus = verified("gus@example.com")
    expect(await me(await tokenOf("gus"))).toMatchObject({ member: { role: "admin" } })
  })
})
