import { describe, expect, onTestFinished, test } from "vitest"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { conversation, textMessage, unit } from "../../test/support/conversations.ts"
import { tempDir } from "../../test/support/temp.ts"
import { createHubApp } from "../src/http/app.ts"
import { type AccessCheckOverrides, createAnswers } from "../src/search/answer.ts"
import { createFollower } from "../src/search/follow.ts"
import { openFts5 } from "../src/search/fts5.ts"
import { auditLines, recordAudit } from "../src/store/audit.ts"
import type { Database, Viewer } from "../src/store/connection.ts"
import { setProvider } from "../src/store/groups.ts"
import { openTenantHistory, openViewerHistory } from "../src/store/history.ts"
import { identify } from "../src/store/identity.ts"
import { identifySubject, logInPerson } from "../src/store/logins.ts"
import { addMember, addToken } from "../src/store/people.ts"
import { forgetPushed, planPush } from "../src/store/push.ts"
import { AUDIT_SCOPE, NOTICE_SCOPE, TOKEN_SCOPE } from "../src/store/scope.ts"
import { headOf, newLaptop, pushOne, wireMessages } from "./support/laptop.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { tokenFor } from "./support/server.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

// Who may read what. Every text contains a canary that names its tenant, its author and who may read it.

const VISIBILITIES = ["private", "project", "org"] as const
const KEYS = ["git.test/acme/api", "git.test/acme/web"]

/** The commit that every canary made. */
const LINES = {
  commits: [{ hash: "1a2b3c4d", at: Date.parse("2026-10-02T10:00:00Z"), subject: "x" }],
  paths: [{ path: "src/shared.ts", until: Date.parse("2030-01-01") }],
  sessions: [],
}

type World = { team: Team; viewers: Viewer[]; canaries: { text: string; mayRead: (viewer: Viewer) => boolean }[] }

/** 3 tenants × 6 members (one of them an admin, one an auditor) × 2 projects × 3 visibilities. */
async function world(): Promise<World> {
  const team = await newTeam()
  const viewers: Viewer[] = []
  const canaries: World["canaries"] = []
  for (const slug of ["acme", "bolt", "core"]) {
    const tenant = await newTenant(team, slug)
    const names = ["ann", "bob", "cid", "dan"]
    const members = await Promise.all(names.map((name) => newMember(team, tenant, name)))
    const others = [await newMember(team, tenant, "eve", "admin"), await newMember(team, tenant, "fay", "auditor")]
    viewers.push(...members, ...others)
    const granted = [members.slice(0, 3), members.slice(2)]
    for (const [i, key] of KEYS.entries()) {
      const [owner, ...rest] = granted[i]!
      await newProject(team, tenant, key, { own: [owner!], write: rest })
      for (const author of granted[i]!)
        for (const visibility of VISIBILITIES) {
          const text = `canary-${slug}-${author.name}-${i}-${visibility}`
          await push(team, author, key, text, visibility)
          canaries.push({
            text,
            mayRead: (viewer) =>
              viewer.tenant === tenant &&
              viewer.role !== "auditor" &&
              (viewer.member === author.member ||
                visibility === "org" ||
                (visibility === "project" && granted[i]!.some(({ member }) => member === viewer.member))),
          })
        }
    }
  }
  return { team, viewers, canaries }
}

async function push(
  team: Team,
  author: Viewer,
  project: string,
  text: string,
  visibility: "private" | "project" | "org",
) {
  const laptop = newLaptop()
  const title = { text: `title ${text}`, from: "person" as const }
  const effects = [
    { type: "file" as const, path: `/code/${text}.ts`, action: "edited" as const },
    { type: "command" as const, command: `echo ${text}` },
    { type: "commit" as const, hash: "1a2b3c4", subject: `subject ${text}` },
  ]
  const hunks = ["shared", text].map((name) => ({
    ...{ path: `src/${name}.ts`, old_start: 1, old_lines: 0, new_start: 1, new_lines: 1 },
    lines: [`+const found = "${text}"`],
  }))
  const changed = { type: "tool_result" as const, text: "done", origin: "local_tool" as const, is_error: false, hunks }
  const messages = [
    textMessage("k1", text, { model: "opus", effects }),
    textMessage("k2", "", { role: "tool", parts: [changed] }),
  ]
  await laptop.writeUnit(unit(text, [conversation(text, messages, { title, git_branch: `branch-${text}` })]))
  const ref = { source: "claude_code", id: text }
  const head = headOf((await laptop.conversation(ref))!)
  return pushOne(team, author, { project, head, messages: await wireMessages(laptop, ref), visibility })
}

/** Everything that a history can answer, as one text, including refs and names that the viewer should not know. */
async function everything(history: HistoryReader, texts: string[], owners: string[]): Promise<string> {
  const refs = texts.flatMap((id) => owners.map((owner) => ({ owner, source: "claude_code", id })))
  const each = <T>(ask: (ref: (typeof refs)[number]) => Promise<T>) => Promise.all(refs.map(ask))
  return JSON.stringify([
    await history.list({ limit: 1000, offset: 0 }),
    ...(await Promise.all(KEYS.map((inside) => history.list({ limit: 1000, offset: 0, inside })))),
    await history.list({ limit: 1000, offset: 0, among: refs, inside: KEYS[0] }),
    await history.changes(undefined, 1000),
    await Promise.all(texts.map((prefix) => history.resolve({ prefix }))),
    await each((ref) => history.conversation(ref)),
    await each((ref) => history.messages(ref)),
    await each((ref) => history.versions(ref)),
    await each((ref) => history.filesOf(ref)),
    await each((ref) => history.commandsOf(ref)),
    await each((ref) => history.madeIn(ref)),
    await each((ref) => history.around({ ...ref, number: 1 }, 50, 50)),
    await history.titles(refs),
    await history.touching("/code/"),
    await history.usingModel("opus"),
    await history.keptOnlyHere(),
    await history.commits({ limit: 1000, inside: KEYS[0] }),
    await history.spans({}),
    await history.stats(),
    await history.projects(),
  ])
}

describe.skipIf(!hasPostgres)("walls", () => {
  const NO_SCOPE = "rev > 0"
  const OPENED = [
    "conversation",
    "chunk",
    "change",
    "tenant",
    "member",
    "project",
    "project_grant",
    "break_glass",
    "feed",
    "tombstone",
    "audit",
    "consent",
    "token",
    "invitation",
    "identity_provider",
    "group_grant",
    "group_role",
    "access_request",
    "project_rule",
    "line_work",
    "line_file",
    "line_commit",
  ]

  test.each([
    ["with both walls", false, {}],
    ["with row-level security alone", false, { scope: NO_SCOPE }],
    ["with the scope alone", true, {}],
  ])(
    "everybody can read all that they have access to, and not a byte of anything else, %s",
    async (_, isOpened, options) => {
      const { team, viewers, canaries } = await world()
      if (isOpened) {
        for (const table of OPENED) await run(team.owner, `alter table hub.${table} disable row level security`)
        await run(team.owner, "alter table hub_key.conversation_key disable row level security")
      }
      const texts = canaries.map(({ text }) => text)
      for (const viewer of viewers) {
        const mine = texts.filter((text) => canaries.find((one) => one.text === text)!.mayRead(viewer))
        const history = openViewerHistory(team.db, viewer, options)
        // Their own, and those of a member whose refs exist in every tenant.
        const wanted = texts.filter((text) => text.includes(`-${viewer.name}-`) || text.includes("-ann-"))
        const seen = await everything(history, wanted, ["ann", viewer.name])
        const found = texts.filter((text) => seen.includes(text))
        expect(found.filter((text) => !mine.includes(text))).toEqual([])
        expect(found).toEqual(mine)
      }
    },
  )

  test("the tools reveal nothing of others, with both walls or with either, and count what got past the first", async () => {
    const { team, viewers, canaries } = await world()
    const data = tempDir()
    const follower = createFollower(team.db, data)
    onTestFinished(() => follower.close())
    while (!(await follower.step()));
    const questions = [
      { tool: "search", input: { query: "canary", limit: 50 } },
      { tool: "search", input: { query: "canary", by: "message", limit: 50, explain: true } },
      { tool: "search", input: { query: "canarry" } },
      { tool: "search", input: { file: "canary", limit: 50 } },
      { tool: "list", input: { limit: 50 } },
      { tool: "list", input: { all: true, limit: 50 } },
      { tool: "stats", input: {} },
      { tool: "show", input: { ids: canaries.slice(0, 20).map(({ text }) => `ann/claude_code:${text}`) } },
      { tool: "timeline", input: { id: `ann/claude_code:${canaries[0]!.text}#1`, session: "all" } },
      { tool: "passages", input: { query: "canary", by: "message", limit: 50, offset: 0 } },
      ...KEYS.map((project) => ({ tool: "lines", input: { ...LINES, project } })),
      ...canaries.slice(0, 9).map(({ text }) => ({ tool: "passage", input: { id: `ann/claude_code:${text}#1` } })),
      ...canaries
        .slice(0, 9)
        .map(({ text }) => ({ tool: "reasons", input: { id: `ann/claude_code:${text}`, edits: [] } })),
      { tool: "edited_files", input: { ids: canaries.slice(0, 20).map(({ text }) => `ann/claude_code:${text}`) } },
    ]
    const answersFor = async (viewer: Viewer, walls: AccessCheckOverrides) => {
      const answers = createAnswers({
        db: team.db,
        words: openFts5(data),
        folder: tempDir(),
        version: "0",
        accessChecks: walls,
      })
      try {
        const all = await Promise.all(questions.map((one) => answers.answer({ viewer, ...one })))
        const drops = all.map((one) => ("drops" in one ? one.drops.unexpected : 0)).reduce((a, b) => a + b, 0)
        // The answer to a ref that is not theirs says that it does not exist, and repeats it.
        const texts = all.map((one) => JSON.stringify(one).replaceAll(/ann\/claude_code:canary[\w-]+/g, "")).join("\n")
        const lines = JSON.stringify(all.filter((_, i) => questions[i]!.tool === "lines"))
        return {
          drops,
          found: canaries.filter(({ text }) => texts.includes(text)),
          ofLines: canaries.filter(({ text }) => lines.includes(text)),
        }
      } finally {
        answers.close()
      }
    }
    const some = viewers.filter((_, i) => i % 5 === 0)
    for (const viewer of some) {
      const { found, drops, ofLines } = await answersFor(viewer, {})
      expect(found.filter(({ mayRead }) => !mayRead(viewer))).toEqual([])
      expect(ofLines).toEqual(canaries.filter(({ mayRead }) => mayRead(viewer)))
      expect(found.length > 0 || viewer.role !== "member").toBe(true)
      expect(drops).toBe(0)
    }
    // Without the first wall, row-level security drops what the index returns, and counts it.
    let dropped = 0
    for (const viewer of some) {
      const { found, drops, ofLines } = await answersFor(viewer, { scope: NO_SCOPE, index: "all" })
      expect(found.filter(({ mayRead }) => !mayRead(viewer))).toEqual([])
      expect(ofLines).toEqual(canaries.filter(({ mayRead }) => mayRead(viewer)))
      dropped += drops
    }
    expect(dropped).toBeGreaterThan(0)
    for (const table of OPENED) await run(team.owner, `alter table hub.${table} disable row level security`)
    await run(team.owner, "alter table hub_key.conversation_key disable row level security")
    for (const viewer of some) {
      const { found, ofLines } = await answersFor(viewer, {})
      expect(found.filter(({ mayRead }) => !mayRead(viewer))).toEqual([])
      expect(ofLines).toEqual(canaries.filter(({ mayRead }) => mayRead(viewer)))
    }
  })

  /** Removes the conditions in the statements of each route. */
  const SCOPES = [AUDIT_SCOPE, NOTICE_SCOPE, TOKEN_SCOPE]
  test.each([
    ["with both walls", [], false],
    ["with row-level security alone", SCOPES, false],
    ["with the scope alone", [], true],
  ])("no route reveals what belongs to somebody else, %s", async (_, removed, isOpened) => {
    const { team, viewers } = await world()
    const [ann] = viewers as [Viewer]
    // Everybody has something of each kind, with their name in it; the first admin opened ann's conversation.
    for (const { tenant, member, name, role } of viewers) {
      const canary = `canary-${tenant}-${name}-${role}`
      await recordAudit(team.asOwner, { tenant, member }, { action: "read", target: `audit-${canary}` })
      const token = { tenant, member, kind: "personal" as const, scopes: [], name: `token-${canary}` }
      await addToken(team.asOwner, token)
      const admin = viewers.find((one) => one.tenant === tenant && one.role === "admin")!
      await team.asOwner(
        `insert into hub.break_glass (tenant, conversation, member, author, ref, reason, until)
         values ($1, 999, $2, $3, 'x', $4, now() + interval '1 hour')`,
        [tenant, admin.member, member, `notice-${canary}`],
      )
    }
    if (isOpened)
      for (const table of OPENED) await run(team.owner, `alter table hub.${table} disable row level security`)
    let replaced = 0
    const without = (text: string) =>
      removed.reduce((left, scope) => {
        if (left.includes(scope)) replaced++
        return left.replaceAll(scope, "true")
      }, text)
    const db: Database = {
      ...team.db,
      as: (viewer, work) => team.db.as(viewer, (query) => work((text, values) => query(without(text), values))),
    }
    const state = () => ({ waiting: 0, drops: { expected: 0, unexpected: 0 }, lags: [], isBuilt: true })
    const search = { ask: async () => ({}), state, close: async () => {} }
    const app = createHubApp({ db, search, version: "0", log: () => {} })
    const seen = async (viewer: Viewer, path: string) => {
      const authorization = `Bearer ${await tokenFor(team, viewer, ["push", "read", "admin"])}`
      const response = await app.request(path, { headers: { authorization } })
      return [...new Set((await response.text()).match(/\w+-canary-[\w-]+/g))].sort()
    }
    const readers = viewers.filter(({ tenant }) => tenant === ann.tenant)
    const all = (kind: string, of: Viewer[]) =>
      of.map(({ tenant, name, role }) => `${kind}-canary-${tenant}-${name}-${role}`).sort()
    for (const viewer of readers) {
      // The admin wrote the reasons, and row-level security alone would let them read those again.
      const isOpener = viewer.role === "admin" && removed.length > 0
      expect(await seen(viewer, "/v1/me")).toEqual(all("notice", isOpener ? readers : [viewer]))
      expect(await seen(viewer, "/v1/tokens")).toEqual(all("token", [viewer]))
      const mayAudit = viewer.role === "admin" || viewer.role === "auditor"
      const logged = [...all("audit", readers), ...all("token", readers)]
      expect(await seen(viewer, "/v1/audit?limit=1000")).toEqual(mayAudit ? logged : [])
      // Only the row-level security of the log, without the check of the route.
      const lines = await auditLines(db, viewer, { limit: 1000 })
      expect(lines.lines.length > 0).toBe(mayAudit)
    }
    expect(replaced > 0).toBe(removed.length > 0)
  })

  test("without a tenant or a member nothing is visible, and nobody can act as another in a query", async () => {
    const { team, viewers } = await world()
    const tables = [
      "conversation",
      "chunk",
      "member",
      "project",
      "change",
      "tombstone",
      "consent",
      "audit",
      "token",
      "receipt",
      "access_request",
      "line_work",
      "line_file",
      "line_commit",
    ]
    for (const table of tables) {
      const count = `select count(*) as n from hub.${table}`
      expect(await team.db.asNobody({}, (query) => query(count))).toEqual([{ n: 0 }])
      expect(await team.db.asNobody({ "hub.member": "1" }, (query) => query(count))).toEqual([{ n: 0 }])
    }
    const [ann] = viewers as [Viewer]
    const others = "select count(*) as n from hub.conversation where tenant <> $1"
    expect(await team.db.as(ann, (query) => query(others, [ann.tenant]))).toEqual([{ n: 0 }])
    await expect(
      team.db.as(ann, (query) =>
        query("update hub.conversation set visibility = 'org' where author <> $1 returning id", [ann.member]),
      ),
    ).resolves.toEqual([])
    await expect(
      team.db.as(ann, (query) =>
        query("insert into hub.change (tenant, seq, conversation, deleted) values ($1, 999999, 1, true)", [
          ann.tenant + 1,
        ]),
      ),
    ).rejects.toThrow(/row-level security/)
  })

  test("every table has row-level security, even for its owner, and neither role can bypass it", async () => {
    const { owner } = await newTeam()
    const open = await run(
      owner,
      `select relname from pg_class c join pg_namespace n on n.oid = relnamespace
       where nspname in ('hub', 'hub_key') and relkind = 'r' and relname <> 'migration'
         and not (relrowsecurity and relforcerowsecurity)`,
    )
    expect(open).toEqual([])
    const roles = "select rolname from pg_roles where rolname like 'dex_hub_%' and (rolsuper or rolbypassrls)"
    expect(await run(owner, roles)).toEqual([])
  })

  test("the indexer reads all of their own tenant, nothing of another, and changes nothing", async () => {
    const { team, viewers, canaries } = await world()
    const [ann] = viewers as [Viewer]
    const rows = (await openTenantHistory(team.db, ann.tenant).changes(undefined, 1000)).changes
    const own = canaries.filter(({ text }) => text.startsWith("canary-acme-"))
    expect(rows.map(({ ref }) => ref!.id).sort()).toEqual(own.map(({ text }) => text).sort())
    const change = team.db.asIndex(ann.tenant, (query) => query("delete from hub.conversation"))
    await expect(change).rejects.toThrow(/denied/)
    for (const statement of ["select from hub.line_file", "delete from hub.line_work"])
      await expect(team.db.asIndex(ann.tenant, (query) => query(statement))).rejects.toThrow(/denied/)
  })

  test("the hub's role adds members only to the tenant that the operator gave their issuer", async () => {
    const team = await newTeam()
    const [acme, bolt] = [await newTenant(team, "acme"), await newTenant(team, "bolt")]
    const [one, two] = ["https://one.test", "https://two.test"]
    await setProvider(team.asOwner, acme, { issuer: one })
    await expect(setProvider(team.asOwner, bolt, { issuer: one })).rejects.toThrow("belongs to another tenant")
    await setProvider(team.asOwner, bolt, { issuer: two })
    const person = { subject: "1", name: "ann", groups: ["engineers"] }
    const ofAcme = await identify(team.db, await logInPerson(team.db, { ...person, issuer: one }, 1))
    const ofBolt = await identify(team.db, await logInPerson(team.db, { ...person, issuer: two }, 1))
    expect([ofAcme, ofBolt]).toMatchObject([{ tenant: "acme" }, { tenant: "bolt" }])
    // A member with this address, whom the operator added, is in another tenant.
    await addMember(team.asOwner, { tenant: bolt, name: "kim", role: "admin", email: "kim@one.test" })
    const kim = { issuer: one, subject: "2", name: "kim", email: "kim@one.test", groups: [] }
    expect(await identify(team.db, await logInPerson(team.db, kim, 1))).toMatchObject({
      tenant: "acme",
      viewer: { role: "member" },
    })
    const other = logInPerson(team.db, { ...person, issuer: "https://three.test" }, 1)
    await expect(other).rejects.toMatchObject({ status: 403 })
    expect(await identifySubject(team.db, one, "1")).toEqual({ ...ofAcme, scopes: ["read"] })
    expect(await identifySubject(team.db, "https://three.test", "1")).toBeUndefined()
    const denied = [
      "insert into hub.member (tenant, name, role) values (1, 'x', 'admin')",
      "update hub.member set role = 'admin', disabled_at = null",
      "delete from hub.member",
      "select * from hub.identity_provider",
      "select * from hub.group_grant",
      "insert into hub.group_role (tenant, group_name, role) values (1, 'engineers', 'admin')",
      "select hub.apply_groups(1, 1)",
    ]
    for (const statement of denied) {
      await expect(team.db.asNobody({}, (query) => query(statement))).rejects.toThrow(/permission denied/)
      await expect(team.db.as(ofAcme!.viewer, (query) => query(statement))).rejects.toThrow(/permission denied/)
    }
    const token =
      "insert into hub.token (hash, tenant, member, kind, scopes, name) values ('x', $1, $2, 'device', '{admin}', 'x')"
    const { tenant, member } = ofAcme!.viewer
    await expect(team.db.as(ofAcme!.viewer, (query) => query(token, [tenant, member]))).rejects.toThrow(
      /row-level security/,
    )
  })

  test("a member who may only read a project, or shares nothing, cannot push to it", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const [ann, bob] = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
    await newProject(team, tenant, KEYS[0]!, { own: [ann], read: [bob] })
    const planned = { source: "claude_code", id: "x", digest: "d", chunks: [] }
    const plan = async (viewer: Viewer, project: string) =>
      (await planPush(team.db, viewer, { project, conversations: [planned] }))[0]
    expect(await plan(ann, KEYS[0]!)).toMatchObject({ state: "send" })
    expect(await plan(bob, KEYS[0]!)).toMatchObject({ state: "refused", why: expect.stringContaining("not push") })
    expect(await plan(ann, KEYS[1]!)).toMatchObject({ state: "refused", why: expect.stringContaining("no project") })
    await team.asOwner("update hub.consent set until = now()")
    expect(await plan(ann, KEYS[0]!)).toMatchObject({ state: "refused", why: expect.stringContaining("do not share") })
  })
})

describe.skipIf(!hasPostgres)("stored data", () => {
  test("is unreadable without its key, gone once it is forgotten, and not accepted again", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, KEYS[0]!, { own: [ann] })
    await push(team, ann, KEYS[0]!, "quokka", "project")
    const dump = await run(
      team.owner,
      "select c::text from hub.conversation c union all select c::text from hub.chunk c union all select c::text from hub.change c",
    )
    // Its id comes from the agent and reveals nothing; here it is the word itself.
    const text = JSON.stringify(dump).replaceAll(",quokka,", "")
    expect(text).not.toContain("quokka")
    expect(text).not.toContain(Buffer.from("quokka").toString("hex"))
    const history = openViewerHistory(team.db, ann)
    const ref = { owner: "ann", source: "claude_code", id: "quokka" }
    expect(JSON.stringify(await history.messages(ref))).toContain("quokka")
    expect(await forgetPushed(team.db, ann, [ref])).toMatchObject({ forgotten: 1 })
    expect(await history.messages(ref)).toEqual([])
    const left = "select (select count(*) from hub.chunk) + (select count(*) from hub_key.conversation_key) as n"
    expect(await run(team.owner, left)).toEqual([{ n: "0" }])
    expect(await push(team, ann, KEYS[0]!, "quokka", "project")).toEqual({ sent: 0 })
    expect(await history.forgotten()).toBe(1)
  })

  test("counts a revision once that was sent twice, and ignores an older one", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, KEYS[0]!, { own: [ann] })
    expect(await push(team, ann, KEYS[0]!, "quokka", "project")).toMatchObject({ sent: 1, rev: 1, seq: 1 })
    expect(await push(team, ann, KEYS[0]!, "quokka", "project")).toEqual({ sent: 0 })
    expect(await push(team, ann, KEYS[0]!, "quokka", "org")).toMatchObject({ sent: 0, rev: 2, seq: 2 })
    expect(await team.asOwner("select seq from hub.change order by seq")).toEqual([{ seq: "1" }, { seq: "2" }])
  })
})
