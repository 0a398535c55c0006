import { describe, expect, test } from "vitest"
import { DEX, dex } from "../../test/support/dex.ts"
import { tempDir } from "../../test/support/temp.ts"
import type { StoredAuditEntry } from "../src/store/audit.ts"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { API, share } from "./support/share.ts"

const REF = "ann/claude_code:secret-plan"
type Page = { lines: StoredAuditEntry[]; next?: string }

describe.skipIf(!hasPostgres)("the audit log", () => {
  test("records who read which conversations with which tool, and never the question", async () => {
    const { team, ann, as, mcp, tokens, admin, found } = await hubWithPeople()
    await share(team, ann, "race", ["why does the refresh token race"])
    await found("bob", "refresh")
    await as("bob", "POST", "/v1/tools/show", { ids: ["ann/claude_code:race#1"] })
    await mcp(tokens.bob, "dex_search", { query: "refresh zebrafinch" })
    await as("ann", "PUT", "/v1/consents/git.test%2Facme%2Fnew", { what: ["said"] })
    await as("ann", "DELETE", "/v1/consents/git.test%2Facme%2Fnew")
    await as("ann", "DELETE", "/v1/conversations/claude_code/race")
    const { lines } = (await as("fay", "GET", "/v1/audit?limit=1000")).body as Page
    const entries = lines.map(({ member, action, target, detail }) => ({ member, action, target, detail }))
    const conversations = ["ann/claude_code:race"]
    expect(entries).toContainEqual({ member: "bob", action: "read", target: "show", detail: { conversations } })
    expect(entries.filter(({ target }) => target === "search")[0]).toMatchObject({ detail: { conversations } })
    expect(entries.slice(0, 4)).toEqual([
      { member: "ann", action: "forget", detail: { conversations } },
      { member: "ann", action: "consent_end", target: "git.test/acme/new", detail: {} },
      { member: "ann", action: "consent", target: "git.test/acme/new", detail: { what: ["said"] } },
      { member: "ann", action: "grant", target: "git.test/acme/new", detail: { about: "ann", level: "own" } },
    ])
    expect(entries.at(-1)).toEqual({ member: null, action: "member_add", target: "ann", detail: { role: "member" } })
    expect(JSON.stringify(lines)).not.toMatch(/zebrafinch|refresh|dexh_/)
    const printed = (await admin("audit", "--limit", "1000")).stdout.trim().split("\n")
    expect(printed.map((line) => JSON.parse(line))).toMatchObject(
      [...lines].reverse().map(({ member, ...line }) => (member === null ? line : { ...line, member })),
    )
  })

  test("is read page by page, only by auditors and admins, and nobody can change a line", async () => {
    const { team, eve, as } = await hubWithPeople()
    const all = ((await as("eve", "GET", "/v1/audit")).body as Page).lines
    const paged: StoredAuditEntry[] = []
    for (let next: string | undefined = ""; next !== undefined; ) {
      const page = (await as("eve", "GET", `/v1/audit?limit=3&before=${next}`)).body as Page
      paged.push(...page.lines)
      next = page.next
    }
    expect(paged).toEqual(all)
    expect(all.length).toBeGreaterThan(6)
    for (const who of ["ann", "bob"] as const) expect((await as(who, "GET", "/v1/audit")).status).toBe(403)
    expect((await as("eve", "GET", "/v1/audit?limit=0")).status).toBe(400)
    for (const change of ["update hub.audit set action = 'x'", "delete from hub.audit", "truncate hub.audit"])
      await expect(team.db.as(eve, (query) => query(change))).rejects.toThrow(/permission denied/)
    const forged = "insert into hub.audit (tenant, member, action) values ($1, $2, 'read')"
    await expect(team.db.as(eve, (query) => query(forged, [eve.tenant, eve.member - 1]))).rejects.toThrow(
      /row-level security/,
    )
    expect(((await as("eve", "GET", "/v1/audit")).body as Page).lines).toEqual(all)
  })
})

describe.skipIf(!hasPostgres)("roles", () => {
  test("an auditor can read no conversation with any tool or over MCP, and cannot push", async () => {
    const { team, ann, fay, as, mcp, tokens } = await hubWithPeople()
    await share(team, ann, "race", ["why does the refresh token race"], { visibility: "org" })
    for (const tool of ["search", "show", "list", "timeline", "stats"])
      expect((await as("fay", "POST", `/v1/tools/${tool}`, { query: "race" })).status).toBe(403)
    expect((await mcp(tokens.fay, "dex_search", { query: "race" })).status).toBe(403)
    expect((await as("fay", "PUT", `/v1/consents/${encodeURIComponent(API)}`, { what: [] })).status).toBe(403)
    // By row-level security alone, even with a grant.
    await team.asOwner(
      "insert into hub.project_grant (tenant, project, member, level) select $1, id, $2, 'own' from hub.project",
      [fay.tenant, fay.member],
    )
    for (const table of ["hub.conversation", "hub.chunk", "hub_key.conversation_key"])
      expect(await team.db.as(fay, (query) => query(`select from ${table}`))).toEqual([])
  })

  test("an admin reads a private conversation only by breaking the glass, and its author is notified", async () => {
    const { team, ann, hub, tokens, as, found } = await hubWithPeople()
    await share(team, ann, "secret-plan", ["we will buy quokkatronics"], { visibility: "private" })
    await found("ann", "quokkatronics")
    const read = async () => JSON.stringify((await as("eve", "POST", "/v1/tools/show", { ids: [REF] })).body)
    expect(await read()).not.toContain("quokkatronics")
    const open = (who: "ann" | "eve" | "fay", body: object) => as(who, "POST", "/v1/break-glass", body)
    const input = { ref: REF, reason: "incident 42", hours: 2 }
    for (const who of ["ann", "fay"] as const) expect((await open(who, input)).status).toBe(403)
    for (const wrong of [{ hours: 25 }, { hours: 0 }, { reason: " " }, { reason: "a\nb" }, { ref: "secret-plan" }])
      expect((await open("eve", { ...input, ...wrong })).status).toBe(400)
    expect((await open("eve", { ...input, ref: "ann/claude_code:other" })).status).toBe(404)
    expect((await as("ann", "GET", "/v1/me")).body).toMatchObject({ notices: [] })
    expect((await open("eve", input)).status).toBe(200)
    expect(await read()).toContain("quokkatronics")
    expect((await as("eve", "POST", "/v1/tools/search", { query: "quokkatronics" })).body).toMatchObject({ total: 1 })
    const notice = { type: "break_glass", by: "eve", ref: REF, reason: "incident 42" }
    expect((await as("ann", "GET", "/v1/me")).body).toMatchObject({ notices: [notice] })
    expect((await as("bob", "GET", "/v1/me")).body).toMatchObject({ notices: [] })
    const { lines } = (await as("fay", "GET", "/v1/audit")).body as Page
    expect(lines).toContainEqual(
      expect.objectContaining({
        member: "eve",
        action: "break_glass",
        target: REF,
        detail: { reason: "incident 42", hours: 2 },
      }),
    )
    const home = tempDir()
    await dex(home, ["hub", "login", hub.url, "--token-stdin"], {}, DEX, tokens.ann)
    const { stdout } = await dex(home, ["hub", "status"])
    expect(stdout).toMatch(/eve read ann\/claude_code:secret-plan as an admin on \d{4}-\d\d-\d\d. Reason: incident 42/)
    await team.asOwner("update hub.break_glass set at = now() - interval '3 hours', until = now() - interval '1 hour'")
    expect(await read()).not.toContain("quokkatronics")
    // Nobody else can read it, nor the admin for longer, even with their own statement.
    const forged = `insert into hub.break_glass (tenant, conversation, member, author, ref, reason, until)
      values ($1, 1, $2, 1, 'x', 'x', now() + interval '25 hours')`
    await expect(team.db.as(ann, (query) => query(forged, [ann.tenant, ann.member]))).rejects.toThrow()
  })
})
