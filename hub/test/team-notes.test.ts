import { describe, expect, onTestFinished, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { createAnswers } from "../src/search/answer.ts"
import { createFollower } from "../src/search/follow.ts"
import { openFts5 } from "../src/search/fts5.ts"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { share } from "./support/share.ts"

describe.skipIf(!hasPostgres)("a hub's notes about its own history", () => {
  test("never name a command that only helps on a laptop", async () => {
    const { team, ann, as } = await hubWithPeople()
    await share(team, ann, "one", ["a zebrafinch sings"])
    const data = tempDir()
    const follower = createFollower(team.db, data)
    onTestFinished(() => follower.close())
    while (!(await follower.step()));
    await share(team, ann, "two", ["another zebrafinch sings"])
    const answers = createAnswers({ db: team.db, words: openFts5(data), folder: tempDir(), version: "0" })
    onTestFinished(() => answers.close())
    const behind = JSON.stringify(await answers.answer({ viewer: ann, tool: "search", input: { query: "zebrafinch" } }))
    expect(behind).toContain(
      "The hub's search index is not up to date: the newest messages may be missing. Try again in a moment.",
    )
    const absent = JSON.stringify(
      (await as("ann", "POST", "/v1/tools/timeline", { id: "bob/claude_code:nope#1" })).body,
    )
    expect(absent).toContain("`dex list --team` lists all of them.")
    for (const note of [behind, absent]) expect(note).not.toContain("dex sync")
  })
})
