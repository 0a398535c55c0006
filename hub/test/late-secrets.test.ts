import { describe, expect, onTestFinished, test } from "vitest"
import { chunksOf, unpackChunk } from "../../src/hub-client/wire.ts"
import { tempDir } from "../../test/support/temp.ts"
import { openChecker } from "../src/push/checker.ts"
import { createFollower } from "../src/search/follow.ts"
import type { Viewer } from "../src/store/connection.ts"
import { openTenantHistory, openViewerHistory } from "../src/store/history.ts"
import { quarantinedOf, scanAgain } from "../src/store/late-secrets.ts"
import { storeChunk } from "../src/store/push.ts"
import { filesWith } from "./support/bytes.ts"
import { headNamed, packedFacts, pushOne, saying } from "./support/laptop.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

const KEY = "git.test/acme/api"
const SECRET = "zqwertoken"
const scan = {
  version: 99,
  secretRulesIn: (values: readonly object[]) => (JSON.stringify(values).includes(SECRET) ? ["new-rule"] : []),
  secretRulesInChunk: async (data: Uint8Array) =>
    JSON.stringify(unpackChunk(data)).includes(SECRET) ? ["new-rule"] : [],
}

async function push(team: Team, ann: Viewer, id: string, text: string) {
  const messages = [saying(1, text)]
  return pushOne(team, ann, { project: KEY, head: headNamed(id, messages), messages, visibility: "org" })
}

describe.skipIf(!hasPostgres)("a secret that a newer rule finds", () => {
  test.each(["both walls", "row-level security alone", "the scope alone"])(
    "hides the conversation from all but its author, until a revision is without it, with %s",
    async (walls) => {
      const team = await newTeam()
      const tenant = await newTenant(team)
      const [ann, bob] = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
      const eve = await newMember(team, tenant, "eve", "admin")
      await newProject(team, tenant, KEY, { own: [ann], read: [bob] })
      await push(team, ann, "a", `the ${SECRET} is here`)
      await push(team, ann, "b", "nothing here")
      await team.asOwner(
        `insert into hub.break_glass (tenant, conversation, author, ref, member, reason, until)
         select tenant, id, author, native_id, $1, 'test', now() + interval '1 hour' from hub.conversation`,
        [eve.member],
      )
      if (walls === "the scope alone")
        for (const table of ["conversation", "chunk", "change", "member", "project", "project_grant", "break_glass"])
          await run(team.owner, `alter table hub.${table} disable row level security`)
      const options = walls === "row-level security alone" ? { scope: "rev > 0" } : {}
      const reads = async (viewer: Viewer, id: string) =>
        JSON.stringify(
          await openViewerHistory(team.db, viewer, options).messages({ owner: "ann", source: "claude_code", id }),
        )
      const data = tempDir()
      const follower = createFollower(team.db, data)
      onTestFinished(() => follower.close())
      while (!(await follower.step()));
      expect(filesWith(data, SECRET.slice(3, 8))).not.toEqual([])
      for (const viewer of [ann, bob, eve]) expect(await reads(viewer, "a")).toContain(SECRET)

      const scanOne = () => scanAgain(team.db, scan, { maxPerTenant: 1 })
      expect(await scanOne()).toEqual({ scanned: 1, quarantined: 0, failed: [] })
      expect(await scanOne()).toEqual({ scanned: 1, quarantined: 1, failed: [] })
      expect(await scanOne()).toEqual({ scanned: 0, quarantined: 0, failed: [] })
      expect(await reads(ann, "a")).toContain(SECRET)
      for (const viewer of [bob, eve]) {
        expect(await reads(viewer, "a")).toBe("[]")
        expect(await reads(viewer, "b")).toContain("nothing here")
      }
      expect(await quarantinedOf(team.db, ann)).toMatchObject([{ id: "a", rules: ["new-rule"] }])
      expect(await quarantinedOf(team.db, bob)).toEqual([])
      while (!(await follower.step()));
      expect(filesWith(data, SECRET.slice(3, 8))).toEqual([])
      const feed = await openTenantHistory(team.db, tenant).changes(undefined, 10)
      expect(feed.changes.map(({ deleted }) => deleted)).toEqual([false, true])

      // The same chunk is refused in a new revision; a revision without it lifts the quarantine.
      await expect(push(team, ann, "a", `the ${SECRET} is here`)).resolves.toEqual({ sent: 0 })
      const still = [saying(1, `the ${SECRET} is here`)]
      const renamed = headNamed("a", still, { title: { text: "renamed", from: "person" } })
      const sent = pushOne(team, ann, { project: KEY, head: renamed, messages: still, visibility: "org" })
      await expect(sent).rejects.toMatchObject({ code: "secret", rules: ["new-rule"] })
      await push(team, ann, "a", "the [REDACTED:new-rule] is here")
      expect(await reads(bob, "a")).toContain("REDACTED")
      expect(await quarantinedOf(team.db, ann)).toEqual([])
      while (!(await follower.step()));
    },
  )

  test("is found in a conversation of more chunks than may wait for a check", async () => {
    const team = await newTeam()
    const ann = await newMember(team, await newTenant(team), "ann")
    await newProject(team, ann.tenant, KEY, { own: [ann] })
    await push(team, ann, "a", "nothing here")
    for (let number = 2; number < 150; number++)
      for (const { hash, data } of chunksOf([saying(number, `part ${number}`)]))
        await storeChunk(team.db, ann, { source: "claude_code", id: "a" }, { hash, data, ...packedFacts(data) })
    const checker = openChecker()
    onTestFinished(() => checker.close())
    expect(await scanAgain(team.db, { ...scan, ...checker })).toEqual({ scanned: 1, quarantined: 0, failed: [] })
  })

  test("is found although the scan of other conversations fails", async () => {
    const team = await newTeam()
    const people = []
    for (const name of ["ann", "bob"]) {
      const member = await newMember(team, await newTenant(team), name)
      await newProject(team, member.tenant, KEY, { own: [member] })
      people.push(member)
    }
    const [ann, bob] = people as [Viewer, Viewer]
    await push(team, ann, "a", `the ${SECRET} is here`)
    await push(team, bob, "b", `the ${SECRET} is here`)
    await push(team, ann, "damaged", "nothing here")
    const [{ id }] = (await team.asOwner<{ id: string }>(
      "select id from hub.conversation where native_id = 'damaged'",
    )) as [{ id: string }]
    await team.asOwner("update hub.chunk set data = '\\x00' where conversation = $1", [id])
    const first = await scanAgain(team.db, scan, { maxPerTenant: 1 })
    expect(first).toMatchObject({ scanned: 1, quarantined: 1, failed: [{ conversation: Number(id) }] })
    expect(await quarantinedOf(team.db, bob)).toMatchObject([{ id: "b" }])
    const next = await scanAgain(team.db, scan, { maxPerTenant: 1, except: [Number(id)] })
    expect(next).toEqual({ scanned: 1, quarantined: 1, failed: [] })
    expect(await quarantinedOf(team.db, ann)).toMatchObject([{ id: "a" }])
  })

  test("hides a conversation of which another part cannot be scanned", async () => {
    const team = await newTeam()
    const ann = await newMember(team, await newTenant(team), "ann")
    await newProject(team, ann.tenant, KEY, { own: [ann] })
    const messages = [saying(1, "nothing here")]
    const head = headNamed("a", messages, { title: { text: `the ${SECRET}`, from: "person" } })
    await pushOne(team, ann, { project: KEY, head, messages })
    await team.asOwner("update hub.chunk set data = '\\x00'")
    expect(await scanAgain(team.db, scan)).toEqual({ scanned: 1, quarantined: 1, failed: [] })
  })
})
