import { describe, expect, test } from "vitest"
import { removeAbandoned } from "../src/store/abandoned.ts"
import { auditForOperator } from "../src/store/audit.ts"
import { openViewerHistory } from "../src/store/history.ts"
import { disableMember } from "../src/store/people.ts"
import { planPush } from "../src/store/push.ts"
import { receiptsOf } from "../src/store/receipts.ts"
import { forgetExpired, setRetention } from "../src/store/retention.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const [KEY, OTHER] = ["git.test/acme/api", "git.test/acme/web"]
const DAY = 86_400_000

describe.skipIf(!hasPostgres)("a project that keeps conversations for 30 days", () => {
  test("forgets what ended before, even from members who left, and nothing else; it is recorded and not accepted again", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const [ann, bob] = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
    await newProject(team, tenant, KEY, { own: [ann], write: [bob] })
    await newProject(team, tenant, OTHER, { own: [ann] })
    const push = async (who: typeof ann, id: string, project: string, days: number) => {
      const messages = [saying(1, `what ${id} said`)]
      const ended_at = Date.now() - days * DAY
      await pushOne(team, who, { project, head: headNamed(id, messages, { ended_at }), messages })
    }
    await push(ann, "old", KEY, 31)
    await push(ann, "young", KEY, 29)
    await push(ann, "elsewhere", OTHER, 400)
    await push(bob, "left", KEY, 40)
    expect(await forgetExpired(team.db, tenant)).toBe(0)
    await setRetention(team.asOwner, tenant, KEY, 30)
    await disableMember(team.asOwner, tenant, "bob")
    expect(await forgetExpired(team.db, tenant)).toBe(2)
    expect(await forgetExpired(team.db, tenant)).toBe(0)

    const { rows } = await openViewerHistory(team.db, ann).list({ limit: 10, offset: 0 })
    expect(rows.map(({ ref }) => ref.id).sort()).toEqual(["elsewhere", "young"])
    expect(await run(team.owner, "select from hub_key.conversation_key")).toHaveLength(2)
    expect(await receiptsOf(team.db, ann)).toMatchObject([{ conversations: 1, why: "retention" }])
    expect((await receiptsOf(team.db, ann))[0]).not.toHaveProperty("by")
    const lines = await auditForOperator(team.asOwner, { tenant })
    expect(lines.filter(({ action }) => action === "retention").map(({ detail }) => detail)).toEqual(
      expect.arrayContaining([{ conversations: ["ann/claude_code:old"] }, { conversations: ["bob/claude_code:left"] }]),
    )
    await setRetention(team.asOwner, tenant, KEY, undefined)
    const kept = (await auditForOperator(team.asOwner, { tenant })).filter(({ action }) => action === "keep")
    expect(kept).toMatchObject([
      { member: null, target: KEY, detail: { days: 30 } },
      { member: null, target: KEY, detail: { days: "forever" } },
    ])
    const conversations = [{ source: "claude_code", id: "old", digest: "0".repeat(64), chunks: [] }]
    expect(await planPush(team.db, ann, { project: KEY, conversations })).toEqual([{ state: "gone" }])
  })
})

describe.skipIf(!hasPostgres)("a push that never finished", () => {
  test("is removed after a week, and can be started again then; what was committed stays", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, KEY, { own: [ann] })
    const messages = [saying(1, "what was said")]
    const pushed = (id: string) => ({ project: KEY, head: headNamed(id, messages), messages })
    await pushOne(team, ann, pushed("whole"))
    const conversations = [{ source: "claude_code", id: "half", digest: "0".repeat(64), chunks: [] }]
    await planPush(team.db, ann, { project: KEY, conversations })
    const daysAgo = (days: number) =>
      team.asOwner("update hub.conversation set planned_at = now() - make_interval(days => $1) where rev = 0", [days])
    await daysAgo(6)
    expect(await removeAbandoned(team.db, tenant)).toBe(0)
    await daysAgo(8)
    expect(await removeAbandoned(team.db, tenant)).toBe(1)
    expect(await run(team.owner, "select from hub_key.conversation_key")).toHaveLength(1)
    await pushOne(team, ann, pushed("half"))
    const { rows } = await openViewerHistory(team.db, ann).list({ limit: 10, offset: 0 })
    expect(rows.map(({ ref }) => ref.id).sort()).toEqual(["half", "whole"])
  })
})
