import { describe, expect, test } from "vitest"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"

describe.skipIf(!hasPostgres)("the first member who shares a project", () => {
  const KEY = "git.test/acme/new"

  async function place() {
    const people = await hubWithPeople()
    const share = async (who: "ann" | "bob" | "eve") =>
      (await people.as(who, "PUT", `/v1/consents/${encodeURIComponent(KEY)}`, { what: ["said"] })).status
    const levels = () =>
      people.team.asOwner(
        `select m.name, g.level from hub.project_grant g join hub.member m on m.tenant = g.tenant and m.id = g.member
         join hub.project p on p.tenant = g.tenant and p.id = g.project where p.key = $1 order by 1`,
        [KEY],
      )
    const grant = (name: string, level: string) => people.admin("grant", name, KEY, "--new", "--level", level)
    return { ...people, share, levels, grant }
  }

  test("owns it, even if others were granted it before", async () => {
    const { share, levels, grant } = await place()
    await grant("bob", "read")
    expect(await share("ann")).toBe(204)
    expect(await share("bob")).toBe(403)
    expect(await levels()).toEqual([
      { name: "ann", level: "own" },
      { name: "bob", level: "read" },
    ])
  })

  test("owns it even if they were granted less before, and stays its owner when they stop sharing", async () => {
    const { as, share, levels, grant } = await place()
    await grant("bob", "write")
    expect(await share("bob")).toBe(204)
    expect(await levels()).toEqual([{ name: "bob", level: "own" }])
    await as("bob", "DELETE", `/v1/consents/${encodeURIComponent(KEY)}`)
    expect(await share("ann")).toBe(403)
  })

  test("does not own what an operator gave to another, and only one of two who share at once owns it", async () => {
    const { share, levels, grant, team } = await place()
    await grant("bob", "own")
    expect(await share("ann")).toBe(403)
    await team.asOwner("delete from hub.project where key = $1", [KEY])
    expect((await Promise.all([share("ann"), share("bob"), share("eve")])).sort()).toEqual([204, 403, 403])
    expect(await levels()).toHaveLength(1)
  })
})
