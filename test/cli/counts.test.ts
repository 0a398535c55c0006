import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"
import { visitOnce } from "../view/served.ts"

const MAIN = "11111111-1111-4111-8111-111111111111"

// Two conversations of a person and a script's, with two subagents of the first, a person's conversation of which only a
// command is left, and two notes.
const home = syncedOnce((at) => {
  subagent(at, "a1", ["Find out who holds the mutex", "The mutex is held by the refresh, says the wombat."])
  subagent(at, "a2", ["Look at the tests", "No test waits for the mutex."])
  claudeSession(at, { id: "44444444-4444-4444-8444-444444444444", start: "2026-11-12T09:00:00Z", turns: [] })
  claudeSession(at, {
    id: "55555555-5555-4555-8555-555555555555",
    start: "2026-11-12T10:00:00Z",
    turns: [{ user: "<command-name>/clear</command-name>" }],
  })
})
beforeAll(async () => {
  await dex(home, ["note", "The mutex is deliberate"])
  await dex(home, ["note", "Rotate tokens every week"])
})
const visitor = visitOnce(home)

function subagent(at: string, name: string, [prompt, answered]: string[]): void {
  const common = { isSidechain: true, agentId: name, sessionId: MAIN, cwd: "/code/api", version: "2.1.197" }
  const usage = { input_tokens: 3, output_tokens: 5 }
  const message = { id: `msg_${name}`, type: "message", role: "assistant", model: "model-a", usage }
  const content = [{ type: "text", text: answered }]
  const lines = [
    { type: "user", uuid: `${name}-1`, parentUuid: null, message: { role: "user", content: prompt } },
    { type: "assistant", uuid: `${name}-2`, parentUuid: `${name}-1`, message: { ...message, content } },
  ].map((line, i) => ({ ...common, timestamp: `2026-11-03T10:0${i}:30Z`, ...line }))
  const path = join(at, ".claude/projects/-code-api", MAIN, "subagents", `agent-${name}.jsonl`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
}

const printed = async (...args: string[]) => {
  const { stdout, stderr } = await dex(home, args)
  return `${stdout}${stderr}`.replace(/\s+/g, " ")
}
const json = async (...args: string[]) => JSON.parse((await dex(home, [...args, "--json"])).stdout)

test("every command means the same by conversations, and says what else it counts", async () => {
  const { total, left_out } = await json("list")
  expect(left_out).toEqual({ subagent: 2, automation: 1, note: 2 })
  const stats = await json("stats")
  expect(stats.total_conversations).toBe(total)
  expect(stats.kinds).toEqual({ person: total, ...left_out })
  expect((await json("list", "--all")).kinds).toEqual(stats.kinds)
  expect((await json("reindex")).conversations).toBe(total)

  const of = {
    list: await printed("list"),
    "list --all": await printed("list", "--all"),
    "search by a date": await printed("search", "--from", "2020-01-01"),
    sync: await printed("sync"),
    sources: await printed("sources"),
    stats: (await printed("stats")).replace(/conversations (\d+)/, "$1 conversations"),
    reindex: await printed("reindex"),
    doctor: await printed("doctor"),
    "home page": await (await visitor().get("/")).text(),
    // The bars count the conversations of each month.
    "find page": (await (await visitor().get("/find")).text()).match(/\d+ conversations?, newest first/)![0],
  }
  for (const [name, text] of Object.entries(of)) {
    const numbers = [...text.matchAll(/(\d+) conversations?\b/g)].map(([, count]) => Number(count))
    expect({ name, numbers }).toEqual({ name, numbers: numbers.map(() => total) })
    expect(numbers.length, name).toBeGreaterThan(0)
  }
  for (const name of ["list --all", "sync", "stats", "doctor"] as const)
    for (const other of ["2 by subagents", "1 automated", "2 notes"])
      expect(of[name].match(/conversations \(and ([^)]*)/)?.[1], name).toContain(other)

  // Not every conversation used a model.
  const { total: spent } = await json("usage")
  expect(await printed("usage")).toContain(`${spent.conversations} conversations with usage`)
})

test("a search counts conversations separately from subagents and notes, which it also finds", async () => {
  const found = await json("search", "mutex")
  expect(found).toMatchObject({ conversations: 1, kinds: { person: 1, subagent: 2, note: 1 } })
  expect(found.results).toHaveLength(2)
  expect(await printed("search", "mutex")).toContain(
    "2 results shown; found in 1 conversation (and 2 by subagents, 1 note).",
  )
  expect(await printed("search", "sidebar")).toContain("1 conversation found.")
})

test("a match in a subagent is shown in the row of its parent, with the ref of the match", async () => {
  const [parent] = (await json("list", "--session", `claude_code:${MAIN}`)).conversations.filter(
    ({ kind }: { kind: string }) => kind === "person",
  )
  const { results } = await json("search", "wombat")
  const { title, date, source, project } = parent
  expect(results).toMatchObject([
    {
      kind: "subagent",
      parent: parent.id,
      title,
      source,
      project,
      date: date.replace(/\.\d+Z$/, "Z"),
      message_index: 2,
    },
  ])
  const ref = `${results[0].id}#2`
  const text = await printed("search", "wombat")
  expect(text).toContain("Refresh token race")
  expect(text).toContain("(subagent)")
  expect(text).toContain(ref)
  expect(await printed("show", ref)).toContain("says the wombat")
  const page = await (await visitor().get("/find?q=wombat")).text()
  expect(page).toContain("Refresh token race")
  expect(page).toContain("subagent")
})
