import { describe, expect, test } from "vitest"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { API, share } from "./support/share.ts"

describe.skipIf(!hasPostgres)("what a member keeps private on a hub", () => {
  test("is listed and found by its author, and by nobody else", async () => {
    const { team, ann, as } = await hubWithPeople()
    await share(team, ann, "diary", ["a zebrafinch sings"], { visibility: "private" })
    for (const [tool, input] of [
      ["list", {}],
      ["list", { project: API }],
      ["search", { query: "zebrafinch" }],
    ] as const) {
      const ask = async (who: "ann" | "bob" | "eve") =>
        JSON.stringify((await as(who, "POST", `/v1/tools/${tool}`, input)).body)
      expect([tool, await ask("ann")]).toEqual([tool, expect.stringContaining("ann/claude_code:diary")])
      for (const who of ["bob", "eve"] as const) expect(await ask(who)).not.toContain("diary")
    }
    expect((await as("ann", "POST", "/v1/tools/list", {})).body).toMatchObject({ total: 1 })
    expect((await as("bob", "POST", "/v1/tools/list", {})).body).toMatchObject({ total: 0 })
  })
})
