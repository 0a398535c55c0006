import { describe, expect, test } from "vitest"
import { formatRef } from "../../src/core/ref.ts"
import { RANK_WEIGHTS } from "../../src/search/rank.ts"
import { tempDir } from "../../test/support/temp.ts"
import { createAnswers } from "../src/search/answer.ts"
import type { Viewer } from "../src/store/connection.ts"
import { accessOf, MAX_CHANGED } from "../src/store/member-access.ts"
import { forgetPushed } from "../src/store/push.ts"
import { MEMBER_SCOPE } from "../src/store/scope.ts"
import { ENGINES } from "./support/engines.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

// What any engine for the words of teams must do.

const [GRANTED, OPEN, CLOSED] = ["git.test/acme/granted", "git.test/acme/open", "git.test/acme/closed"]
const VISIBILITIES = ["private", "project", "org"] as const
const CANARY = [{ words: "canary" }]

async function push(
  team: Team,
  author: Viewer,
  { project, id, visibility = "project" as (typeof VISIBILITIES)[number], text = "a canary sings" }: Pushed,
) {
  const messages = [saying(1, `${text}: ${id}`), saying(2, "and a second message")]
  const head = headNamed(id, messages, { title: { text: `about ${id}`, from: "person" } })
  await pushOne(team, author, { project, head, messages, visibility })
}
type Pushed = { project: string; id: string; visibility?: (typeof VISIBILITIES)[number]; text?: string }

/** Members of every role, with and without grants; conversations of every visibility, in projects of every kind. */
async function world() {
  const team = await newTeam()
  const tenant = await newTenant(team)
  const member = (name: string, role?: Viewer["role"]) => newMember(team, tenant, name, role)
  const [ann, bob, cid] = [await member("ann"), await member("bob"), await member("cid")]
  const admins = [await member("opened", "admin"), await member("ended", "admin"), await member("another", "admin")]
  const [service, auditor] = [await member("ci", "service"), await member("aud", "auditor")]
  await newProject(team, tenant, GRANTED, { own: [ann], write: [cid], read: [bob, service] })
  await newProject(team, tenant, OPEN, { own: [ann], write: [cid] })
  await newProject(team, tenant, CLOSED, { own: [ann], write: [cid] })
  await team.asOwner("update hub.project set visibility = 'org' where key = $1", [OPEN])
  for (const author of [ann, cid])
    for (const [p, project] of [GRANTED, OPEN, CLOSED].entries())
      for (const visibility of VISIBILITIES)
        await push(team, author, { project, id: `${author.name}-${p}-${visibility}`, visibility })
  await push(team, ann, { project: CLOSED, id: "quarantined", visibility: "org" })
  await team.asOwner("update hub.conversation set quarantined_at = now() where native_id = 'quarantined'")
  const breakGlass = (who: Viewer, native_id: string, until: string) =>
    team.asOwner(
      `insert into hub.break_glass (tenant, conversation, author, ref, member, reason, at, until)
       select tenant, id, author, native_id, $1, 'test', now() - interval '2 hours', now() + $2::interval from hub.conversation where native_id = $3`,
      [who.member, until, native_id],
    )
  await breakGlass(admins[0]!, "ann-2-private", "1 hour")
  await breakGlass(admins[0]!, "quarantined", "1 hour")
  await breakGlass(admins[1]!, "ann-2-private", "-1 minute")
  const stranger = await newMember(team, await newTenant(team), "ann")
  return { team, tenant, ann, bob, cid, viewers: [ann, bob, cid, ...admins, service, auditor, stranger] }
}

describe.skipIf(!hasPostgres).each(Object.keys(ENGINES))("the words of a team in %s", (name) => {
  test("are found and counted by exactly those who may read the conversation in PostgreSQL", async () => {
    const { team, viewers } = await world()
    const { engine, follow } = await ENGINES[name]!(team, [...new Set(viewers.map(({ tenant }) => tenant))])
    await follow()
    const sizes: number[] = []
    for (const viewer of viewers) {
      const sql = `select native_id from hub.conversation where ${MEMBER_SCOPE} and quarantined_at is null order by 1`
      const rows = await team.db.as(viewer, (query) => query<{ native_id: string }>(sql))
      const mayRead = rows.map(({ native_id }) => native_id)
      sizes.push(mayRead.length)
      const opened = await engine.open(viewer.tenant)
      if (!opened) {
        expect(mayRead).toEqual([])
        continue
      }
      const words = await opened.within((await accessOf(team.db, viewer, opened.followed)).access)
      const hits = await words.find({ match: CANARY, weights: RANK_WEIGHTS.columns, limit: 100 })
      expect(hits.map(({ ref }) => ref.id).sort(), `${viewer.role} ${viewer.name}`).toEqual(mayRead)
      const newest = await words.newest({ all: [CANARY], limit: 100 })
      expect(newest.map(({ ref }) => ref.id).sort()).toEqual(mayRead)
      expect((await words.count({ match: CANARY })).total).toBe(mayRead.length)
      expect((await words.countConversations({ match: CANARY })).total).toBe(mayRead.length)
      const { messages, shares } = await words.sizes(CANARY)
      // A title and two messages each.
      expect(messages).toBe(3 * mayRead.length)
      expect(shares[0]).toBeCloseTo(mayRead.length === 0 ? 0 : 1 / 3)
      const asked = mayRead.slice(0, 2).map((id) => hits.find(({ ref }) => ref.id === id)!.doc)
      expect(await words.containing(CANARY[0]!, asked)).toEqual(new Set(asked))
    }
    // Ann, bob, cid; the admins with a broken glass, one that has ended, and none; the service, the auditor, another tenant.
    expect(sizes).toEqual([15, 10, 15, 9, 8, 8, 4, 0, 0])
  })

  test("are in no answer and no number from the moment they are withdrawn, while the indexer stands still", async () => {
    const { team, tenant, ann, bob } = await world()
    const { engine, follow } = await ENGINES[name]!(team, [tenant])
    for (const id of ["made-private", "moved", "forgotten", "hidden-late", "kept"])
      await push(team, ann, { project: GRANTED, id, text: "a wombat digs" })
    await follow()
    const answers = createAnswers({ db: team.db, words: engine, folder: tempDir(), version: "0" })
    const ask = async () => {
      const input = { query: "wombat", by: "message", explain: true, limit: 50 }
      const answer = await answers.answer({ viewer: bob, tool: "search", input })
      if ("problem" in answer) throw new Error(answer.problem.message)
      const { results, total } = answer.output as { results: { id: string; score_final: number }[]; total: number }
      expect(answer.drops).toEqual({ expected: 0, unexpected: 0 })
      return { ids: results.map(({ id }) => id.replace("ann/claude_code:", "")).sort(), total, results }
    }
    const left = (...ids: string[]) => ({ ids, total: ids.length })
    expect(await ask()).toMatchObject(left("forgotten", "hidden-late", "kept", "made-private", "moved"))
    await push(team, ann, { project: GRANTED, id: "made-private", text: "a wombat digs", visibility: "private" })
    expect(await ask()).toMatchObject(left("forgotten", "hidden-late", "kept", "moved"))
    await push(team, ann, { project: CLOSED, id: "moved", text: "a wombat digs" })
    expect(await ask()).toMatchObject(left("forgotten", "hidden-late", "kept"))
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "forgotten" }])
    expect(await ask()).toMatchObject(left("hidden-late", "kept"))
    await team.asOwner(`with one as (update hub.conversation set quarantined_at = now() where native_id = 'hidden-late' returning id),
        feed as (update hub.feed set seq = seq + 1 where tenant = ${tenant} returning seq)
      insert into hub.change (tenant, seq, conversation, deleted) select ${tenant}, feed.seq, one.id, true from one, feed`)
    const before = await ask()
    expect(before).toMatchObject(left("kept"))
    // The scores are those after the indexer has caught up.
    await follow()
    expect(await ask()).toEqual(before)
    await team.asOwner("delete from hub.project_grant where member = $1", [bob.member])
    expect(await ask()).toMatchObject(left())
    // What is granted is found at once.
    await team.asOwner(
      "insert into hub.project_grant (tenant, project, member, level) select tenant, id, $1, 'read' from hub.project where key = $2",
      [bob.member, GRANTED],
    )
    expect(await ask()).toMatchObject(left("kept"))
  })

  test("if too much is waiting, nothing is counted, and what must not be read is dropped as expected", async () => {
    const { team, tenant, ann, bob } = await world()
    const { engine, follow } = await ENGINES[name]!(team, [tenant])
    for (const id of ["one", "two"]) await push(team, ann, { project: GRANTED, id, text: "a wombat digs" })
    await follow()
    await push(team, ann, { project: GRANTED, id: "two", text: "a wombat digs", visibility: "private" })
    await team.asOwner(`with feed as (update hub.feed set seq = seq + ${MAX_CHANGED} where tenant = ${tenant} returning seq)
      insert into hub.change (tenant, seq, conversation, deleted)
        select ${tenant}, seq - n, 1000000 + n, true from feed, generate_series(0, ${MAX_CHANGED - 1}) n`)
    const answers = createAnswers({ db: team.db, words: engine, folder: tempDir(), version: "0" })
    const answer = await answers.answer({ viewer: bob, tool: "search", input: { query: "wombat", explain: true } })
    expect(answer).toMatchObject({
      output: { total: 1, total_is_at_least: true, notes: [expect.stringContaining("far behind")] },
      drops: { expected: 1, unexpected: 0 },
    })
    const { results } = (answer as { output: { results: object[] } }).output
    expect(results).toMatchObject([
      { id: formatRef({ owner: "ann", source: "claude_code", id: "one" }), score_final: 0 },
    ])
    expect(Object.keys(results[0]!).filter((key) => /^score_(?!final)/.test(key))).toEqual([])
    const passages = await answers.answer({
      viewer: bob,
      tool: "passages",
      input: { query: "wombat", by: "message", limit: 9, offset: 0 },
    })
    expect(passages).toMatchObject({ output: { found: [{ score: 0 }], weights: [1] } })
  })
})
