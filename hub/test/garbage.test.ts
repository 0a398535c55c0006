import { describe, expect, test } from "vitest"
import { chunksOf, pushDigest, type WireMessage } from "../../src/hub-client/wire.ts"
import { removeAbandoned, removeUnnamedChunks } from "../src/store/abandoned.ts"
import type { Viewer } from "../src/store/connection.ts"
import { openTenantHistory } from "../src/store/history.ts"
import { commitPush, planPush, storeChunk } from "../src/store/push.ts"
import { headNamed, packedFacts, pushOne, saying } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { API } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

describe.skipIf(!hasPostgres)("chunks that no revision names", () => {
  async function shared() {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, API, { own: [ann] })
    const push = (messages: WireMessage[]) =>
      pushOne(team, ann, { project: API, head: headNamed("a", messages), messages })
    const read = async () =>
      (await openTenantHistory(team.db, tenant).messages({ owner: "ann", source: "claude_code", id: "a" })).map(
        ({ parts }) => parts[0]!.text,
      )
    const chunks = async () => (await team.asOwner("select from hub.chunk")).length
    return { team, ann, push, read, chunks }
  }

  /** Plans, and sends the chunks. The caller commits. */
  async function begin({ db }: Team, ann: Viewer, messages: WireMessage[]) {
    const head = headNamed("a", messages)
    const sent = [...chunksOf(messages)]
    const hashes = sent.map(({ hash }) => hash)
    const digest = pushDigest(head, "project", hashes)
    const [plan] = await planPush(db, ann, {
      project: API,
      conversations: [{ source: head.source, id: head.id, digest, chunks: hashes }],
    })
    if (plan!.state !== "send") throw new Error(plan!.state)
    const { rev, chunks: missing } = plan!
    for (const { hash, data } of sent)
      if (missing.includes(hash)) await storeChunk(db, ann, head, { hash, data, ...packedFacts(data) })
    const commit = () =>
      commitPush(db, ann, { project: API, digest, chunks: hashes, parent_rev: rev, visibility: "project", head })
    return { missing, commit }
  }

  const daysAgo = (team: Team, days: number) =>
    Promise.all([
      team.asOwner(`update hub.chunk set stored_at = stored_at - make_interval(days => $1)`, [days]),
      team.asOwner(
        `update hub.conversation set received_at = received_at - make_interval(days => $1), planned_at = planned_at - make_interval(days => $1)`,
        [days],
      ),
    ])
  const removed = async (team: Team) => {
    const [tenant] = await team.asOwner<{ id: number }>("select id from hub.tenant")
    return removeUnnamedChunks(team.db, tenant!.id)
  }

  test("are removed a week after they arrived, and nothing else is", async () => {
    const { team, ann, push, read, chunks } = await shared()
    for (let i = 1; i <= 20; i++) await push([saying(1, `wombat ${i}`)])
    expect(await chunks()).toBe(1)
    await begin(team, ann, [saying(1, "never committed")])
    expect(await chunks()).toBe(2)
    expect(await removed(team)).toBe(0)
    await daysAgo(team, 8)
    expect(await removed(team)).toBe(1)
    expect([await chunks(), await read()]).toEqual([1, ["wombat 20"]])
    expect(await removed(team)).toBe(0)
  })

  test("stay while a push is between its plan and its commit, regardless of their age", async () => {
    const { team, ann, push, read } = await shared()
    await push([saying(1, "wombat")])
    await begin(team, ann, [saying(1, "numbat")])
    await daysAgo(team, 30)
    const { missing, commit } = await begin(team, ann, [saying(1, "numbat")])
    expect(missing).toEqual([])
    expect(await removed(team)).toBe(0)
    expect(await commit()).toMatchObject({ rev: 2 })
    await daysAgo(team, 30)
    expect(await removed(team)).toBe(0)
    expect(await read()).toEqual(["numbat"])
  })

  test("stay if they are the first of a conversation that is planned again", async () => {
    const { team, ann, read } = await shared()
    await begin(team, ann, [saying(1, "quokka")])
    await daysAgo(team, 30)
    const { missing, commit } = await begin(team, ann, [saying(1, "quokka")])
    expect(missing).toEqual([])
    expect(await removeAbandoned(team.db, ann.tenant)).toBe(0)
    expect(await commit()).toMatchObject({ rev: 1 })
    expect(await read()).toEqual(["quokka"])
  })

  test("stay if a delayed commit names chunks that arrived after it began", async () => {
    const { team, push, read } = await shared()
    await push([saying(1, "wombat")])
    await team.asOwner("update hub.chunk set stored_at = stored_at + interval '1 minute'")
    await daysAgo(team, 30)
    expect(await removed(team)).toBe(0)
    expect(await read()).toEqual(["wombat"])
  })
})
