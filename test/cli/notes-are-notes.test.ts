import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { findQuickRows, findRankedRows } from "../../src/cli/picker/look-up.ts"
import { connect } from "../mcp/client.ts"
import { environment } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { sharedTempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { visit } from "../view/served.ts"

const AGENTS_SHELL = { CLAUDE_CODE_SESSION_ID: "7b0d1a52-0000-4000-8000-000000000000" }
const home = sharedTempDir()
const cwd = join(home, "code/api")
const dex = (args: string[], env = {}) => warmDex(home, args, env, cwd)

beforeAll(async () => {
  mkdirSync(cwd, { recursive: true })
  const start = new Date(Date.now() - 3_600_000).toISOString()
  const turns = [{ user: "Make the deploy wait for the tunnel", assistant: "Done." }]
  claudeSession(home, { id: "11111111-1111-4111-8111-111111111111", cwd, start, title: "Deploy waits", turns })
  await syncHome(home)
  await dex(["note", "Deploys need the tunnel"])
  await dex(["note", "The tunnel is slow"], AGENTS_SHELL)
})

test("notes are counted separately, never as conversations", async () => {
  const listed = JSON.parse((await dex(["list", "--json"])).stdout)
  expect([listed.total, listed.left_out]).toEqual([1, { note: 2 }])
  expect((await dex(["list"])).stderr).toContain("Not shown: 2 notes; show with --all")
  expect((await dex(["sync"])).stdout).toContain("In total, dex has 1 conversation (and 2 notes)")
  for (const command of ["sources", "doctor"]) expect((await dex([command])).stdout).toMatch(/dex_note:?\s+2 notes/)
  const stats = (await dex(["stats"])).stdout
  expect(stats).toMatch(/conversations\s+1 \(and 2 notes\)/)
  expect(stats).toMatch(/agents\s+claude_code 1\n/)
})

test("a search calls a note a note", async () => {
  expect((await dex(["search", "slow"])).stderr).toContain("1 note found")
  expect((await dex(["search", "tunnel"])).stderr).toContain("3 results found")
})

test("the first screen lists no note as the newest conversation", async () => {
  const { stdout } = await dex([])
  expect(stdout).toContain("Deploy waits")
  expect(stdout).not.toContain("Note:")
  expect(stdout).toMatch(/dex_note +2 notes/)
})

test("the digest lists a note under decisions, not under conversations", async () => {
  const { projects } = JSON.parse((await dex(["digest", "--json"])).stdout)
  expect(projects).toMatchObject([{ conversations: [{ title: "Deploy waits" }], other_conversations: 0 }])
  expect(projects[0].decisions).toMatchObject([{ quote: "Deploys need the tunnel" }])
})

test("the picker shows conversations, and says that a note matches too", async () => {
  const own = createDex({ env: environment(home, {}), cwd, version: "0.0.0" })
  onTestFinished(() => own.close())
  const typed = (text: string) => ({ text, filter: { scope: "all" as const }, limit: 10 })
  for (const text of ["", "tunnel"]) {
    const { rows } = await findQuickRows(own, typed(text), new Map())
    expect(rows.map(({ title }) => title)).toEqual(["Deploy waits"])
  }
  const { rows, note } = await findRankedRows(own, typed("tunnel"))
  expect(rows.map(({ title }) => title)).toEqual(["Deploy waits"])
  expect(note).toBe("Not shown: 2 notes; `dex search` shows them.")
})

test("the view's home page counts one agent, and lists no note as open or new", async () => {
  const visitor = await visit(home)
  const page = await (await visitor.get("/")).text()
  expect(page).toContain("<span>1 conversation</span><span>2 notes</span>")
  expect(page).toContain("<span>1 agent</span>")
  for (const part of ["/newest", "/left-open"]) expect(await (await visitor.get(part)).text()).not.toContain("Note:")
})

test("agents see the number of notes, and find them as notes", async () => {
  const client = await connect(home, { cwd })
  const textOf = async (name: string, input = {}) => (await client.call(name, input)).content[0]!.text
  const text = await textOf("dex_stats")
  expect(text).toContain("1 conversation (and 2 notes)")
  expect(text).toContain("agents: claude_code 1\n")
  expect(await textOf("dex_search", { query: "tunnel" })).toMatch(/"Note: Deploys need the tunnel" .* note\n/)
})
