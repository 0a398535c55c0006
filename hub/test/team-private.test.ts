import { describe, expect, test } from "vitest"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { API, share } from "./support/share.ts"

const DIARY = "ann/claude_code:diary"
const LISTING = [
  ["list", {}],
  ["list", { all: true }],
  ["list", { project: API }],
  ["list", { from: "2001-01-01" }],
  ["search", { query: "zebrafinch" }],
  ["search", { query: "zebrafinch", by: "message" }],
  ["passages", { query: "zebrafinch", by: "message", limit: 50, offset: 0 }],
] as const
const COUNTING = [["stats", {}]] as const
const NAMING = [
  ["show", { ids: [DIARY] }],
  ["timeline", { id: `${DIARY}#1` }],
  ["timeline", { id: `${DIARY}#1`, session: "all" }],
  ["timeline", { id: "ann/claude_code:plan#1", session: "all" }],
  ["passage", { id: `${DIARY}#1` }],
  ["reasons", { id: DIARY, edits: [] }],
  ["edited_files", { ids: [DIARY] }],
] as const

describe.skipIf(!hasPostgres)("a member's private conversation on a hub", () => {
  test("is listed, counted and found for its author", async () => {
    const { team, ann, as } = await hubWithPeople()
    await share(team, ann, "plan", ["a wombat digs"])
    await share(team, ann, "diary", ["a zebrafinch sings"], { visibility: "private" })
    for (const [tool, input] of LISTING) {
      const { body } = await as("ann", "POST", `/v1/tools/${tool}`, input)
      expect([tool, input, JSON.stringify(body)]).toEqual([tool, input, expect.stringContaining(DIARY)])
    }
    expect((await as("ann", "POST", "/v1/tools/list", {})).body).toMatchObject({ total: 2 })
    expect((await as("ann", "POST", "/v1/tools/stats", {})).body).toMatchObject({ total_conversations: 2 })
  })

  test("changes no answer for anybody else", async () => {
    const { team, ann, as } = await hubWithPeople()
    await share(team, ann, "plan", ["a wombat digs"])
    const answers = async () => {
      const replies: unknown[] = []
      for (const who of ["bob", "eve", "fay"] as const)
        for (const [tool, input] of [...LISTING, ...COUNTING, ...NAMING]) {
          const { status, body } = await as(who, "POST", `/v1/tools/${tool}`, input)
          replies.push({ who, tool, input, status, body })
        }
      return replies
    }
    const before = await answers()
    expect(before).toContainEqual(
      expect.objectContaining({ who: "bob", tool: "list", body: expect.objectContaining({ total: 1 }) }),
    )
    await share(team, ann, "diary", ["a zebrafinch sings"], { visibility: "private" })
    expect(await answers()).toEqual(before)
  })
})
