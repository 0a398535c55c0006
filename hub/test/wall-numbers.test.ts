import { describe, expect, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { createHubApp } from "../src/http/app.ts"
import { createAnswers, teamQueries, teamTools } from "../src/search/answer.ts"
import type { Viewer } from "../src/store/connection.ts"
import { ENGINES } from "./support/engines.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { tokenFor } from "./support/server.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

// What a member may not read changes no number, no order and no word of an answer: how often a word occurs is content too.

const KEYS = ["git.test/acme/api", "git.test/acme/web"]
const REF = "cid/claude_code:seen-0"
const AT = Date.parse("2026-10-02T10:00:00Z")

/** Questions for every tool. A tool that is missing here fails the test. */
const QUESTIONS: Record<string, object[]> = {
  search: [
    { query: "quokka", limit: 50 },
    { query: "quokka", by: "message", limit: 50, explain: true },
    { query: "quokka wombat ledger", by: "message", limit: 50, explain: true },
    { query: '"quokka ledger" -wombat', limit: 50, explain: true },
    { query: "quokka project:web", limit: 50, explain: true },
    { query: "quokka from:2020-01-01", limit: 2, explain: true },
    { query: "quoka" },
    { query: "quok" },
    { query: "layoff" },
    { query: "layoffs" },
    { file: "quokka.ts", limit: 50 },
  ],
  list: [{ limit: 50 }, { all: true, limit: 50 }],
  stats: [{}],
  show: [{ ids: [REF] }],
  timeline: [{ id: `${REF}#1`, session: "all" }],
  passages: [
    { query: "quokka", by: "message", limit: 50, offset: 0 },
    { query: "how many layoffs does the quokka ledger name", by: "conversation", limit: 50, offset: 0 },
  ],
  passage: [{ id: `${REF}#1` }],
  edited_files: [{ ids: [REF] }],
  reasons: [{ id: REF, edits: [] }],
  lines: KEYS.map((project) => ({
    project,
    commits: [{ hash: "1a2b3c4d", at: AT, subject: "x" }],
    paths: [{ path: "src/quokka.ts", until: Date.parse("2030-01-01") }],
    sessions: [],
  })),
}

async function push(
  team: Team,
  author: Viewer,
  project: string,
  id: string,
  texts: string[],
  visibility: "private" | "project" | "org",
) {
  const effects = [
    { type: "file" as const, path: "src/quokka.ts", action: "edited" as const },
    { type: "commit" as const, hash: "1a2b3c4", subject: `subject ${id}` },
  ]
  const hunk = { path: "src/quokka.ts", old_start: 1, old_lines: 0, new_start: 1, new_lines: 1, lines: [`+${id}`] }
  const result = {
    type: "tool_result" as const,
    text: "ok",
    origin: "local_tool" as const,
    is_error: false,
    hunks: [hunk],
  }
  const messages = [
    ...texts.map((text, i) => saying(i + 1, text, { at: AT + i, effects: i === 0 ? effects : [] })),
    saying(texts.length + 1, "", { role: "tool", at: AT + texts.length, parts: [result] }),
  ]
  const head = headNamed(id, messages, { title: { text: `about ${id}`, from: "person" }, started_at: AT, ended_at: AT })
  await pushOne(team, author, { project, head, messages, visibility })
}

describe.skipIf(!hasPostgres).each(Object.keys(ENGINES))(
  "a conversation that a member may not read, in %s,",
  (name) => {
    test("there is a question here for every tool of a hub", () => {
      expect(Object.keys(QUESTIONS).sort()).toEqual(teamQueries.map(({ name }) => name).sort())
      expect(teamTools.every(({ name }) => name in QUESTIONS)).toBe(true)
    })

    // Numbers come from the index, which only the scope restricts.
    test.each(["both walls", "the scope alone"] as const)(
      "changes no number in their answers, with %s",
      async (walls) => {
        const team = await newTeam()
        const tenant = await newTenant(team)
        const [ann, bob, cid, dan] = (await Promise.all(
          ["ann", "bob", "cid", "dan"].map((name) => newMember(team, tenant, name)),
        )) as [Viewer, Viewer, Viewer, Viewer]
        await newProject(team, tenant, KEYS[0]!, { own: [ann], write: [cid] })
        await newProject(team, tenant, KEYS[1]!, { own: [bob], write: [ann, cid] })
        await newProject(team, tenant, "git.test/acme/closed", { own: [ann] })
        for (const [i, key] of KEYS.entries()) {
          await push(
            team,
            cid,
            key,
            `seen-${i}`,
            ["quokka ledger", "wombat wombat ledger", "quokkas and a wombat"],
            "project",
          )
          await push(team, ann, key, `other-${i}`, ["the ledger of a wombat", "quokka"], "private")
          await push(team, key === KEYS[1] ? bob : ann, key, `third-${i}`, ["a ledger", "of layoffs"], "project")
        }
        if (walls === "the scope alone")
          for (const { name } of await team.asOwner<{ name: string }>(
            "select schemaname || '.' || tablename as name from pg_tables where schemaname in ('hub', 'hub_key') and rowsecurity",
          ))
            await run(team.owner, `alter table ${name} disable row level security`)
        const { engine, follow } = await ENGINES[name]!(team, [tenant])
        const answers = createAnswers({ db: team.db, words: engine, folder: tempDir(), version: "0" })
        const ask = async (question: Parameters<typeof answers.answer>[0]) => {
          const answer = await answers.answer(question)
          return "problem" in answer ? answer : answer.output
        }
        const search = {
          ask,
          state: () => ({ waiting: 0, drops: { expected: 0, unexpected: 0 }, lags: [], isBuilt: true }),
          close: async () => {},
        }
        const app = createHubApp({ db: team.db, search, version: "0", log: () => {} })
        // Cid can read a part of it, dan nothing at all.
        const tokens = { cid: await tokenFor(team, cid), dan: await tokenFor(team, dan) }
        const answersTo = async (token: string) => {
          await follow()
          const all: Record<string, unknown> = {}
          for (const [tool, inputs] of Object.entries(QUESTIONS))
            for (const input of inputs) {
              const response = await app.request(`/v1/tools/${tool}`, {
                method: "POST",
                headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
                body: JSON.stringify(input),
              })
              all[`${tool} ${JSON.stringify(input)}`] = { status: response.status, body: await response.json() }
            }
          return all
        }
        const before = { cid: await answersTo(tokens.cid), dan: await answersTo(tokens.dan) }
        expect(Object.values(before.cid).map((one) => (one as { status: number }).status)).not.toContain(500)
        expect(JSON.stringify(before.cid)).toContain("seen-0")
        expect(JSON.stringify(Object.values(before.dan))).not.toContain("quokka ledger")
        const words = [
          "quokka",
          "quokkas",
          "quokkab",
          "quokkac",
          "wombat",
          "layoffs",
          "layoffed",
          "ledger",
          "quoke",
          "quoka",
        ]
        for (const [i, key] of [...KEYS, "git.test/acme/closed"].entries())
          for (let n = 0; n < 12; n++)
            await push(
              team,
              ann,
              key,
              `hidden-${i}-${n}`,
              [`${words.join(" ")} `.repeat(n + 1), "quokka ledger"],
              i === 2 ? "project" : "private",
            )
        expect(await answersTo(tokens.cid)).toEqual(before.cid)
        expect(await answersTo(tokens.dan)).toEqual(before.dan)
      },
    )
  },
)
