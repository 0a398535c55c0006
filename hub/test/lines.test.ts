import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import type { SentLines } from "../../src/learn/blame/lines-about.ts"
import { tempDir } from "../../test/support/temp.ts"
import { createAnswers } from "../src/search/answer.ts"
import { createFollower } from "../src/search/follow.ts"
import { openFts5 } from "../src/search/fts5.ts"
import { breakGlass } from "../src/store/break-glass.ts"
import type { Database, Query, Viewer } from "../src/store/connection.ts"
import { scanAgain } from "../src/store/late-secrets.ts"
import { createLineDeriver, linesAbout } from "../src/store/lines.ts"
import { migrate } from "../src/store/migrate.ts"
import { MIGRATIONS } from "../src/store/migrations.ts"
import { forgetPushed } from "../src/store/push.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

const KEY = "git.test/acme/api"
const OTHER_KEY = "git.test/acme/web"
const AT = Date.parse("2026-10-02T10:00:00Z")
const COMMIT = { hash: "1a2b3c4d5e6f", at: AT + 60_000, subject: "queue: survives a restart" }
const TABLES = ["line_work", "line_file", "line_commit"]

type Written = { path?: string; lines?: string[]; at?: number; hash?: string; subject?: string; parent?: string }

/** Pushes a conversation that edited one file and committed it. */
async function wrote(
  team: Team,
  author: Viewer,
  id: string,
  {
    path = "src/queue.ts",
    lines = ["const queue = open()"],
    at = AT,
    hash = COMMIT.hash.slice(0, 9),
    subject = COMMIT.subject,
    parent,
  }: Written = {},
  { project = KEY, visibility = "project" as "private" | "project" | "org" } = {},
) {
  const added = lines.map((line) => `+${line}`)
  const hunk = { path, old_start: 1, old_lines: 0, new_start: 1, new_lines: lines.length, lines: added }
  const result = { type: "tool_result" as const, text: "done", origin: "local_tool" as const, is_error: false }
  const messages = [
    saying(1, `${id} edits ${path}`, { at, effects: [{ type: "commit", hash, subject }] }),
    saying(2, "", { at, role: "tool", parts: [{ ...result, hunks: [hunk] }] }),
  ]
  const times = { first_at: at, last_at: at, started_at: at, ended_at: at }
  const head = headNamed(id, messages, { ...times, ...(parent !== undefined && { parent: { id: parent } }) })
  return pushOne(team, author, { project, head, messages, visibility })
}

type Asked = { project?: string; path?: string; until?: number; commits?: (typeof COMMIT)[]; sessions?: string[] }

/** Asks who wrote a file, in one of the commits that changed it. */
async function linesFor(team: Team, viewer: Viewer, asked: Asked = {}, scope?: string): Promise<SentLines> {
  const { project = KEY, path = "src/queue.ts", until = AT + 60_000, commits = [COMMIT], sessions = [] } = asked
  const accessChecks = scope === undefined ? {} : { scope }
  const answers = createAnswers({
    db: team.db,
    words: openFts5(tempDir()),
    folder: tempDir(),
    version: "0",
    accessChecks,
  })
  try {
    const input = { project, commits, paths: [{ path, until }], sessions }
    const answer = await answers.answer({ viewer, tool: "lines", input })
    if ("output" in answer) return answer.output as SentLines
    throw new Error(JSON.stringify(answer.problem))
  } finally {
    answers.close()
  }
}

const derive = async (db: Database) => {
  const deriver = createLineDeriver(db)
  while (!(await deriver.step(Date.now() + 60_000)));
}
const idsIn = ({ workers }: SentLines) => workers.map(({ native_id }) => native_id)
const storedRows = async (team: Team) => {
  const counts = await Promise.all(
    TABLES.map((table) => run(team.owner, `select count(*)::int as n from hub.${table}`)),
  )
  return counts.map(([row]) => (row as { n: number }).n)
}
/** Does something before or after a statement of the hub's own role. */
const around = (db: Database, part: string, before: (query: Query) => Promise<unknown>): Database => ({
  ...db,
  asIndex: (tenant, work) =>
    db.asIndex(tenant, (query) =>
      work(async (text, values) => {
        if (text.includes(part)) await before(query)
        return query(text, values)
      }),
    ),
})

async function place() {
  const team = await newTeam()
  const tenant = await newTenant(team, "acme")
  const [ann, bob, cy] = [
    await newMember(team, tenant, "ann"),
    await newMember(team, tenant, "bob"),
    await newMember(team, tenant, "cy"),
  ]
  await newProject(team, tenant, KEY, { own: [ann], read: [bob] })
  await newProject(team, tenant, OTHER_KEY, { own: [ann] })
  return { team, tenant, ann, bob, cy }
}

describe.skipIf(!hasPostgres)("who wrote which line", () => {
  test("is derived once for each revision, and found by path, file name, commit, subject, time and session", async () => {
    const { team, ann, bob } = await place()
    await wrote(team, ann, "a")
    const longAgo = AT - 40 * 86_400_000
    await wrote(team, ann, "moved", { path: "old/place/queue.ts", at: AT + 1_000, hash: "abcdef0" })
    await wrote(team, ann, "later", { path: "src/other.ts", at: AT + 3_600_000, hash: "abcdef1", subject: "x" })
    await wrote(team, ann, "earlier", { path: "src/third.ts", at: longAgo, hash: "abcdef2", subject: "y" })
    await wrote(team, ann, "child", { path: "src/third.ts", at: longAgo, hash: "abcdef3", subject: "z", parent: "a" })
    await derive(team.db)
    expect(await storedRows(team)).toEqual([5, 5, 5])
    const found = await linesFor(team, bob)
    expect(found.files.map(({ path }) => path)).toEqual(["src/queue.ts"])
    expect(found.edits).toMatchObject([{ conversation: 1, file: 1, number: 2, at: AT }])
    expect(idsIn(found).sort()).toEqual(["a", "child", "moved"])
    expect(found.ran.map(({ hash }) => hash)).toEqual(["1a2b3c4d5", "abcdef0"])
    // No edit of the path is old enough, so files with the same name count.
    const byName = await linesFor(team, bob, { until: AT - 1, path: "new/queue.ts" })
    expect(byName.files.map(({ path }) => path).sort()).toEqual(["old/place/queue.ts", "src/queue.ts"])
    const noCommit = { hash: "0".repeat(40), at: AT - 20 * 86_400_000, subject: "" }
    const bySession = { path: "none.ts", commits: [noCommit], sessions: ["2026-01-02-earlier"] }
    expect(idsIn(await linesFor(team, bob, bySession))).toEqual(["earlier"])
    const bySubject = { path: "none.ts", commits: [{ ...COMMIT, hash: "0".repeat(40) }] }
    expect((await linesFor(team, bob, bySubject)).ran).toHaveLength(2)

    // A new revision replaces the rows, and another project has none of them, under other hashes.
    const hashes = () =>
      team.asOwner<{ path: Buffer }>(
        "select path from hub.line_file join hub.conversation c on c.id = conversation where native_id = 'a'",
      )
    const hashesBefore = await hashes()
    await wrote(team, ann, "a", { lines: ["const queue = reopen()"] }, { project: OTHER_KEY })
    await derive(team.db)
    expect(await storedRows(team)).toEqual([5, 5, 5])
    expect(idsIn(await linesFor(team, bob))).not.toContain("a")
    expect(idsIn(await linesFor(team, ann, { project: OTHER_KEY }))).toEqual(["a"])
    expect(await hashes()).not.toEqual(hashesBefore)
    const before = await run(team.owner, "select ctid::text, xmin::text from hub.line_file order by 1")
    await derive(team.db)
    expect(await run(team.owner, "select ctid::text, xmin::text from hub.line_file order by 1")).toEqual(before)
  })

  const SECRET_SCAN = {
    version: 99,
    secretRulesIn: () => [],
    secretRulesInChunk: async () => ["new-rule"],
  }
  test.each<[string, (team: Team, ann: Viewer) => Promise<unknown>, boolean]>([
    ["forgotten", (team, ann) => forgetPushed(team.db, ann, [{ source: "claude_code", id: "a" }]), false],
    ["hidden by a newer rule", (team) => scanAgain(team.db, SECRET_SCAN), false],
    ["made private", (team, ann) => wrote(team, ann, "a", {}, { visibility: "private" }), true],
    ["replaced", (team, ann) => wrote(team, ann, "a", { path: "src/new.ts" }), true],
  ])("writes no row of a conversation that was %s meanwhile, and keeps none of it", async (_, change, isKept) => {
    const { team, ann, bob } = await place()
    await wrote(team, ann, "a")
    let changes = 0
    const changing = around(team.db, "hub.save_lines", async () => {
      if (changes++ === 0) await change(team, ann)
    })
    expect(await createLineDeriver(changing).step(Date.now() + 60_000)).toBe(true)
    expect(changes).toBe(1)
    expect(await storedRows(team)).toEqual([0, 0, 0])
    await derive(team.db)
    expect(await storedRows(team)).toEqual(isKept ? [1, 1, 1] : [0, 0, 0])
    expect((await linesFor(team, bob)).edits).toEqual([])
    // The same change when the rows are there already.
    await wrote(team, ann, "b")
    await derive(team.db)
    expect(idsIn(await linesFor(team, bob))).toContain("b")
    const kept = isKept ? 1 : 0
    expect(await storedRows(team)).toEqual([1 + kept, 1 + kept, 1 + kept])
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "b" }])
    expect(await storedRows(team)).toEqual([kept, kept, kept])
    await wrote(team, ann, "c")
    await derive(team.db)
    await scanAgain(team.db, SECRET_SCAN)
    expect(await storedRows(team)).toEqual([0, 0, 0])
  })

  test("survives a connection that breaks before the end, and is shared by several nodes", async () => {
    const { team, ann, bob } = await place()
    for (let i = 0; i < 12; i++) await wrote(team, ann, `c${i}`, { at: AT + i })
    // What it writes is there only after the commit, and the server ends the connection before that.
    const breaking: Database = {
      ...team.db,
      asIndex: (tenant, work) =>
        team.db.asIndex(tenant, async (query) => {
          const result = await work(query)
          const [one] = await query<{ n: number }>(
            "select count(*)::int as n from pg_locks where pid = pg_backend_pid() and mode = 'RowExclusiveLock'",
          )
          if (one!.n > 0) await query("select pg_terminate_backend(pg_backend_pid())")
          return result
        }),
    }
    const broken = createLineDeriver(breaking)
    await expect(broken.step(Date.now() + 60_000)).rejects.toThrow()
    expect(await storedRows(team)).toEqual([0, 0, 0])
    const saved: string[] = []
    const both = Promise.withResolvers<void>()
    // Each waits with its first conversation until the other has one too.
    const node = (name: string) =>
      around(team.db, "hub.save_lines", async () => {
        saved.push(name)
        if (new Set(saved).size === 2) both.resolve()
        await both.promise
      })
    await Promise.all(["one", "two"].map((name) => derive(node(name))))
    await derive(team.db)
    expect(saved).toHaveLength(12)
    expect(new Set(saved)).toEqual(new Set(["one", "two"]))
    expect((await linesFor(team, bob)).edits).toHaveLength(12)
  })

  test.each([
    ["both walls", undefined, false],
    ["row-level security alone", "rev > 0", false],
    ["the scope alone", undefined, true],
  ])("is revealed to nobody without access, with %s", async (_, scope, isOpened) => {
    const { team, tenant, ann, bob, cy } = await place()
    const [eve, fay, bot] = [
      await newMember(team, tenant, "eve", "admin"),
      await newMember(team, tenant, "fay", "auditor"),
      await newMember(team, tenant, "bot", "service"),
    ]
    const bolt = await newTenant(team, "bolt")
    const dan = await newMember(team, bolt, "dan")
    await newProject(team, bolt, KEY, { own: [dan] })
    await wrote(team, ann, "a")
    await wrote(team, ann, "mine", {}, { visibility: "private" })
    await wrote(team, dan, "of-bolt", { lines: ["const other = open()"] })
    await derive(team.db)
    await breakGlass(team.db, eve, { ref: "ann/claude_code:a", reason: "incident 42", hours: 1 })
    if (isOpened)
      for (const table of ["conversation", "member", "project", "project_grant", "break_glass", "tenant", ...TABLES])
        await run(team.owner, `alter table hub.${table} disable row level security`)
    if (isOpened) await run(team.owner, "alter table hub_key.conversation_key disable row level security")
    const ask = (viewer: Viewer, asked: Asked = {}) => linesFor(team, viewer, asked, scope)
    const sessions = ["a", "mine", "2026-01-02-mine"]
    const NOTHING = { workers: [], files: [], edits: [], ran: [], is_cut: false }
    expect(idsIn(await ask(bob, { sessions }))).toEqual(["a"])
    expect(idsIn(await ask(ann, { sessions }))).toEqual(["a", "mine"])
    expect(idsIn(await ask(eve, { sessions }))).toEqual(["a"])
    expect(idsIn(await ask(dan, { sessions }))).toEqual(["of-bolt"])
    await team.asOwner("update hub.break_glass set at = now() - interval '3 hours', until = now() - interval '1 hour'")
    const request = { project: KEY, commits: [COMMIT], paths: [{ path: "src/queue.ts", until: COMMIT.at }], sessions }
    for (const viewer of [cy, eve, fay, bot]) {
      expect(await ask(viewer, { sessions })).toEqual(NOTHING)
      // The rows, before the history is asked for their conversations.
      const rows = await linesAbout(team.db, viewer, request, scope)
      expect([rows.lineWorkers(KEY), rows.lineFiles(KEY), rows.ranCommits(KEY)]).toEqual([[], [], []])
    }
    const ofBob = await linesAbout(team.db, bob, request, scope)
    expect(ofBob.lineWorkers(KEY).map(({ id }) => id)).toEqual(["a"])
    expect(ofBob.editsOfFiles(ofBob.lineFiles(KEY).map(({ file }) => file))).toHaveLength(1)
    for (const path of ["x".repeat(100_000), "src/queue.ts\0", "\0", "", `${"../".repeat(30)}queue.ts2`])
      expect((await ask(bob, { path, commits: [], sessions: ["\0a", "-".repeat(100_000)] })).edits).toEqual([])
    for (const project of ["\0", `${KEY}\0`, "nothing", "'; drop table hub.line_file; --"])
      expect(await ask(bob, { project, sessions })).toEqual(NOTHING)
    expect(await ask(bob, { project: OTHER_KEY, sessions })).toEqual(NOTHING)
    // The rows themselves, and the hash of another tenant.
    const read = (viewer: Viewer, sql: string, values?: unknown[]) =>
      team.db.as(viewer, (query) => query(sql, values)) as Promise<{ path: Buffer }[]>
    const [ofBolt] = await team.asOwner<{ path: Buffer }>("select path from hub.line_file where tenant = $1", [bolt])
    const [ofAcme] = await team.asOwner<{ path: Buffer }>("select path from hub.line_file where tenant = $1", [tenant])
    expect(ofBolt!.path).not.toEqual(ofAcme!.path)
    if (!isOpened) {
      expect(await read(bob, "select path from hub.line_file")).toHaveLength(1)
      expect(await read(bob, "select path from hub.line_file where path = $1", [ofBolt!.path])).toEqual([])
      for (const viewer of [cy, eve, fay, bot])
        for (const table of TABLES) expect(await read(viewer, `select from hub.${table}`)).toEqual([])
    }
    for (const statement of [
      "delete from hub.line_file",
      "update hub.line_work set activity = ''",
      "insert into hub.line_commit values (1, 1, '', '', '')",
      "select hub.save_lines(1, 1, 1, null, '{}', '{}', '{}', '{}', '{}', '{}')",
    ])
      await expect(read(ann, statement)).rejects.toThrow(/permission denied/)
  })

  test("is carried over from an earlier hub, whose files are deleted", async () => {
    const team = await newTeam({ migrated: false })
    const isOfLines = (step: (typeof MIGRATIONS)[number]) => JSON.stringify(step).includes("line_work")
    const before = MIGRATIONS.slice(0, MIGRATIONS.findIndex(isOfLines))
    await migrate({ owner: team.owner, steps: before })
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, KEY, { own: [ann] })
    await wrote(team, ann, "a")
    const data = tempDir()
    const folders = [`tenant-${tenant}`, `tenant-${tenant}-shard-1`]
    for (const folder of folders) {
      mkdirSync(join(data, folder))
      for (const name of ["index.db", "lines.db", "lines.db-wal"]) writeFileSync(join(data, folder, name), "x")
    }
    await migrate({ owner: team.owner })
    expect((await linesFor(team, ann)).edits).toEqual([])
    const follower = createFollower(team.db, data)
    onTestFinished(() => follower.close())
    while (!(await follower.step()));
    expect(idsIn(await linesFor(team, ann))).toEqual(["a"])
    expect(readdirSync(data)).toEqual([`team-${tenant}`])
    // A hub that was stopped before it deleted them does so when it starts again.
    mkdirSync(join(data, folders[0]!))
    const restarted = createFollower(team.db, data)
    onTestFinished(() => restarted.close())
    while (!(await restarted.step()));
    expect(readdirSync(data)).toEqual([`team-${tenant}`])
  })
})
