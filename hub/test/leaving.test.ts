import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { DEX, dex } from "../../test/support/dex.ts"
import { tempDir } from "../../test/support/temp.ts"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { tokenFor } from "./support/server.ts"
import { API, share } from "./support/share.ts"

type Tokens = { tokens: { id: number; name: string; revoked_at?: string }[] }

describe.skipIf(!hasPostgres)("tokens", () => {
  test("a service reads its one project and pushes nothing, until its token is revoked", async () => {
    const { team, ann, call, admin, found } = await hubWithPeople()
    await share(team, ann, "race", ["why does the zebrafinch sing"])
    await share(team, ann, "open", ["everyone may read this zebrafinch"], { visibility: "org" })
    const made = await admin("service", "add", "ci", API)
    expect(made).toMatchObject({ code: 0 })
    const token = made.stdout.trim()
    await found("ann", "zebrafinch", 2)
    const search = () => call(token, "POST", "/v1/tools/search", { query: "zebrafinch" })
    expect((await search()).body).toMatchObject({ total: 2 })
    const push = await call(token, "PUT", `/v1/consents/${encodeURIComponent(API)}`, { what: ["said"] })
    expect(push.status).toBe(403)
    // Of another project it cannot even read what is shared with everyone.
    const other = await admin("service", "add", "other", "git.test/acme/web", "--new")
    const elsewhere = await call(other.stdout.trim(), "POST", "/v1/tools/search", { query: "zebrafinch" })
    expect(elsewhere.body).toMatchObject({ total: 0 })
    const listed = (await admin("token", "list")).stdout
    expect(listed).not.toContain(token)
    const { id } = listed
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .find(({ member }) => member === "ci")
    expect((await admin("token", "revoke", String(id))).code).toBe(0)
    expect((await search()).status).toBe(401)
    expect(await admin("token", "revoke", String(id))).toMatchObject({ code: 2 })
  })

  test("members can list and revoke only their own", async () => {
    const { as } = await hubWithPeople()
    const listed = async (who: "ann" | "bob") => ((await as(who, "GET", "/v1/tokens")).body as Tokens).tokens
    const [own] = await listed("ann")
    const [foreign] = await listed("bob")
    expect(await listed("ann")).toHaveLength(1)
    expect((await as("ann", "DELETE", `/v1/tokens/${foreign!.id}`)).status).toBe(404)
    expect((await as("bob", "GET", "/v1/me")).status).toBe(200)
    expect((await as("ann", "DELETE", `/v1/tokens/${own!.id}`)).status).toBe(204)
    expect((await as("ann", "GET", "/v1/me")).status).toBe(401)
  })

  test("an invitation gives one token for `dex hub login`, even if many redeem it at once, and expires", async () => {
    const { team, hub, call, admin } = await hubWithPeople()
    await admin("member", "add", "gus")
    const invite = async () => (await admin("member", "invite", "gus")).stdout.split("\n")[0]!
    const redeem = (code: unknown) => call(undefined, "POST", "/v1/login/invitation", { code })
    const code = await invite()
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeem(code)))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(19)
    const { token } = won[0]!.body as { token: string }
    expect((await call(token, "GET", "/v1/me")).body).toMatchObject({ member: { name: "gus", role: "member" } })
    const home = tempDir()
    const login = (typed: string) => dex(home, ["hub", "login", hub.url, "--token-stdin"], {}, DEX, typed)
    const used = await login(code)
    expect([used.code, used.stderr]).toEqual([2, expect.stringContaining("This invitation was already used")])
    expect((await login(await invite())).stdout).toContain("as gus (acme)")
    const old = await invite()
    await team.asOwner("update hub.invitation set expires_at = now() where used_at is null")
    expect((await redeem(old)).status).toBe(403)
    for (const wrong of ["dexi_x", "", 5, undefined]) expect((await redeem(wrong)).status).toBe(403)
    // Nobody can create a token without one.
    const count = await team.asOwner("select count(*)::int as n from hub.token where name = 'invitation'")
    expect(count).toEqual([{ n: 2 }])
    expect(hub.log.join("\n")).not.toMatch(/dexi_|dexh_/)
  })
})

describe.skipIf(!hasPostgres)("`dex hub tokens`", () => {
  test("lists one's own without secrets, and revokes one of them", async () => {
    const { team, ann, hub, tokens, call } = await hubWithPeople()
    const other = await tokenFor(team, ann, ["read"])
    const home = tempDir()
    const run = (args: string[], input = "") => dex(home, ["hub", ...args], {}, DEX, input)
    expect((await run(["tokens"])).stderr).toContain("You are not logged in")
    await run(["login", hub.url, "--token-stdin"], tokens.ann)
    const listed = await run(["tokens"])
    expect(listed.stdout.trim().split("\n")).toHaveLength(2)
    expect(listed.stdout).not.toContain("dexh_")
    const [id] = /^\d+(?=.*: read;)/m.exec(listed.stdout)!
    expect((await run(["tokens", "revoke"])).stderr).toContain("Which token?")
    expect((await run(["tokens", "revoke", id])).stdout).toBe(`Token ${id} is revoked.\n`)
    expect((await call(other, "GET", "/v1/me")).status).toBe(401)
    expect((await run(["tokens"])).stdout).toMatch(new RegExp(`^${id} .*revoked$`, "m"))
    expect((await run(["tokens", "revoke", id])).stderr).toContain("You have no valid token")
  })
})

describe.skipIf(!hasPostgres)("a member who leaves", () => {
  test("loses access with the next request, but what they shared stays under their name", async () => {
    const { team, ann, as, mcp, tokens, admin, found } = await hubWithPeople()
    await share(team, ann, "race", ["why does the refresh token race"])
    await found("bob", "refresh")
    expect((await admin("member", "disable", "ann")).code).toBe(0)
    expect((await as("ann", "POST", "/v1/tools/search", { query: "refresh" })).status).toBe(401)
    expect((await mcp(tokens.ann, "dex_search", { query: "refresh" })).status).toBe(401)
    // Requests in progress read nothing more: every transaction checks.
    await expect(team.db.as(ann, (query) => query("select 1"))).rejects.toMatchObject({ status: 401 })
    expect(JSON.stringify((await as("bob", "POST", "/v1/tools/search", { query: "refresh" })).body)).toContain(
      "ann/claude_code:race",
    )
  })

  test("can be given everything that the hub has about them, readable without dex", async () => {
    const { team, ann, bob, admin, owner } = await hubWithPeople()
    await share(team, ann, "race", ["why does the refresh token race", "the mutex"], { visibility: "private" })
    await share(team, ann, "two", ["a quokka"])
    await share(team, bob, "other", ["a zebrafinch"])
    // Hidden from everyone except her.
    await team.asOwner(
      "update hub.conversation set quarantined_at = now(), quarantined_by = '{github-token}' where native_id = 'two'",
    )
    await admin("member", "disable", "ann")
    const folder = join(tempDir(), "ann")
    const run = await owner("member", "export", "ann", "--tenant", "acme", "--to", folder)
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("conversations.jsonl (2)") })
    const lines = (file: string) =>
      readFileSync(join(folder, file), "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
    expect(lines("conversations.jsonl").map(({ messages }) => messages.length)).toEqual([2, 1])
    expect(lines("conversations.jsonl").map(({ quarantined_by }) => quarantined_by)).toEqual([
      undefined,
      ["github-token"],
    ])
    const all = readdirSync(folder)
      .map((file) => readFileSync(join(folder, file), "utf8"))
      .join("")
    expect(all).toContain("the mutex")
    expect(all).not.toMatch(/zebrafinch|dexh_/)
    expect(lines("member.jsonl")).toMatchObject([{ name: "ann" }])
    expect(lines("consents.jsonl")).toMatchObject([{ project: API, what: ["said", "called", "returned"] }])
    expect(lines("tokens.jsonl")).toMatchObject([{ member: "ann", scopes: ["push", "read"] }])
    expect(readdirSync(folder).sort()).toEqual(
      ["audit", "consents", "conversations", "grants", "member", "requests", "tokens"].map((name) => `${name}.jsonl`),
    )
    for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o077).toBe(0)
    const again = await owner("member", "export", "ann", "--tenant", "acme", "--to", folder)
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("not empty")])
  })
})
