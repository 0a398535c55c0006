import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { forgetPushed } from "../src/store/push.ts"
import { dump, KEYS, restored, WITHOUT_KEYS } from "./support/dumps.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const KEY = "git.test/acme/api"
const TOPICS = ["cache", "invoice", "mutex", "sidebar", "token", "upload", "webhook", "zstd", "parser", "cursor"]
/** Two queries for each conversation: its own word alone, and with a word that all conversations have. */
const QUESTIONS = TOPICS.flatMap((topic) => [topic, `why does the ${topic} race`])

type Answer = { results: { id: string; snippet: string; score_final: number }[] }

describe.skipIf(!hasPostgres || process.env.DEX_TEST_DATABASE_URL !== undefined)("a backup", () => {
  test("restored with a rebuilt index answers as before, without what was forgotten since", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const [ann, bob] = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
    await newProject(team, tenant, KEY, { own: [ann], read: [bob] })
    for (const [i, topic] of TOPICS.entries()) {
      const messages = [
        saying(1, `why does the ${topic} race with the other ${TOPICS[(i + 1) % TOPICS.length]}`),
        saying(2, `the ${topic} was read before it was written`, { role: "assistant" }),
      ]
      await pushOne(team, ann, { project: KEY, head: headNamed(`c${i}`, messages), messages })
    }
    const token = await tokenFor(team, bob)
    const before = await answersOf(await startHub(hubEnv(team)), token, TOPICS.length)
    expect(before.flat().length).toBeGreaterThan(QUESTIONS.length)

    const folder = tempDir()
    const [old, keys] = [join(folder, "hub.sql"), join(folder, "keys.sql")]
    dump(team.owner, WITHOUT_KEYS, old)
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "c3" }])
    dump(team.owner, KEYS, keys)

    const again = await restored(team, [old, keys])
    const hub = await startHub(hubEnv({ ...team, ...again }))
    const after = await answersOf(hub, token, TOPICS.length - 1)
    const isKept = ({ id }: { id: string }) => !id.includes("claude_code:c3")
    expect(after.flat().every(isKept)).toBe(true)
    // Scores change a little, since there is one conversation fewer.
    const named = (answers: Answer["results"][]) =>
      answers.map((rows) =>
        rows
          .filter(isKept)
          .map(({ id, snippet }) => ({ id, snippet }))
          .sort(byId),
      )
    expect(named(after)).toEqual(named(before))
  })

  test("restored with the keys of the same moment answers exactly as before", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, KEY, { own: [ann] })
    for (const [i, topic] of TOPICS.entries()) {
      const messages = [saying(1, `why does the ${topic} race`), saying(2, `since ${TOPICS[(i * 3) % 10]} came first`)]
      await pushOne(team, ann, { project: KEY, head: headNamed(`c${i}`, messages), messages })
    }
    const token = await tokenFor(team, ann)
    const before = await answersOf(await startHub(hubEnv(team)), token, TOPICS.length)
    const folder = tempDir()
    const [all, keys] = [join(folder, "hub.sql"), join(folder, "keys.sql")]
    dump(team.owner, WITHOUT_KEYS, all)
    dump(team.owner, KEYS, keys)
    const again = await restored(team, [all, keys])
    expect(await answersOf(await startHub(hubEnv({ ...team, ...again })), token, TOPICS.length)).toEqual(before)
  })
})

/** The answers to all questions, once the index has all conversations. */
async function answersOf(hub: { url: string }, token: string, conversations: number): Promise<Answer["results"][]> {
  const ask = async (query: string) =>
    (await request(hub.url, token, "POST", "/v1/tools/search", { query, limit: 20 })).body as Answer
  // Before the index exists, results have no score.
  const ranked = async () => (await ask("race")).results.filter(({ score_final }) => score_final > 0).length
  await expect.poll(ranked).toBe(conversations)
  const answers: Answer["results"][] = []
  for (const question of QUESTIONS) answers.push((await ask(question)).results)
  return answers.map((rows) => rows.map(({ id, snippet, score_final }) => ({ id, snippet, score_final })))
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1
}
