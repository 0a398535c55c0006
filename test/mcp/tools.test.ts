import { rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { opencodeSubagent, RETRIEVAL_TOOLS } from "../../src/agents/kit/wiring.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { estimateTokens } from "../../src/core/tokens.ts"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { tempDir, treeHash } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { type Client, connect, connectOnce, type Result } from "./client.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const ERAS = ["2025-06-18", "2025-11-25", "2026-07-28"]

type Definition = {
  name: string
  description: string
  inputSchema: { properties: Record<string, { maximum?: number }> }
  outputSchema: { type: string }
  annotations: object
  _meta: object
}

/** The agents' files before anything read them. */
let before: unknown
const home = syncedOnce((at) => {
  claudeSession(at, {
    id: "88888888-8888-4888-8888-888888888888",
    start: "2026-11-04T10:00:00Z",
    turns: [{ user: "A token\u200bwith\u2028odd\u202esigns \u001b[31m" }],
  })
  before = treeHash(join(at, ".claude"))
})
const spokenIn = Object.fromEntries(ERAS.map((era) => [era, connectOnce(home, { era })]))
const shared = spokenIn["2025-11-25"]!

describe.each(ERAS)("in protocol %s", (era) => {
  const spoken = spokenIn[era]!

  test("lists its tools within 2,000 tokens, all to be loaded immediately, and which of them write", async () => {
    const { result } = await spoken().request("tools/list")
    const tools = result!.tools as Definition[]
    expect(tools.map(({ name }) => name)).toEqual([
      "dex_search",
      "dex_list",
      "dex_get",
      "dex_timeline",
      "context_suggest",
      "dex_note",
      "suggestion_feedback",
      "context_subscribe",
      "dex_stats",
      "dex_guide",
      "dex_why",
    ])
    const published = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
    expect(estimateTokens(JSON.stringify(published))).toBeLessThanOrEqual(2_000)
    for (const tool of tools) {
      const writes = ["dex_note", "suggestion_feedback", "context_subscribe"].includes(tool.name)
      expect(tool.annotations).toMatchObject({ readOnlyHint: !writes, destructiveHint: false })
      expect(tool._meta).toEqual({ "anthropic/alwaysLoad": true })
      expect(tool.outputSchema.type).toBe("object")
    }
    expect(tools.filter(({ inputSchema }) => inputSchema.properties.max_tokens?.maximum === 20_000)).toHaveLength(4)
  })

  test("answers with the same bytes as the command line, and changes none of the agents' files", async () => {
    const same: [string, object, string[]][] = [
      ["dex_search", { query: "refresh token" }, ["search", "refresh token"]],
      ["dex_search", { query: "token", by: "message", limit: 2 }, ["search", "token", "--by", "message", "-l", "2"]],
      ["dex_search", { query: "token", max_tokens: 250 }, ["search", "token", "--max-tokens", "250"]],
      ["dex_list", { all: true }, ["list", "--all"]],
      ["dex_get", { ids: [`${AUTH}#3`] }, ["show", `${AUTH}#3`]],
      ["dex_get", { ids: [AUTH], format: "full" }, ["show", AUTH, "--format", "full"]],
      ["dex_get", { ids: [AUTH], max_tokens: 300 }, ["show", AUTH, "--max-tokens", "300"]],
      ["dex_timeline", { id: `${AUTH}#3`, before: 1, after: 1 }, ["timeline", `${AUTH}#3`, "--before=1", "--after=1"]],
      ["dex_get", { ids: ["88888888"] }, ["show", "88888888"]],
      ["dex_guide", {}, ["guide"]],
      ["dex_stats", {}, ["stats"]],
    ]
    for (const [name, input, args] of same) {
      const line = await spoken().rawCall(name, input)
      const { stdout } = await dex(home, [...args, "--json"])
      expect(stdout.length).toBeGreaterThan(50)
      // The size of the files is for people only: they also contain private projects.
      expect(line).toContain(`"structuredContent":${stdout.trimEnd().replace(/,"disk_bytes":\d+/, "")}`)
    }
    expect(treeHash(join(home, ".claude"))).toEqual(before)
  })

  test("reports errors in an answer, so that a model can correct them", async () => {
    const client = spoken()
    const cases: [string, object, RegExp][] = [
      ["dex_search", {}, /^A search needs words, or at least a file, project/],
      ["dex_search", { query: "x", limit: "many" }, /^limit must be a whole number/],
      ["dex_get", { ids: ["zzzz"] }, /^No conversation "zzzz" was found. `dex_list` lists/],
      ["dex_get", { ids: ["7"] }, /^There is no row 7/],
      ["dex_get", { ids: [AUTH], max_tokens: 30_000 }, /^max_tokens must be at most 20000/],
      ["dex_get", { ids: [AUTH], max_tokens: 20 }, /smallest answer takes about \d+. Try max_tokens \d+/],
      ["dex_search", { query: "token", max_tokens: 20 }, /smallest answer takes about \d+. Try max_tokens \d+/],
      ["dex_list", { from: "someday" }, /someday/],
    ]
    for (const [name, input, pattern] of cases) {
      const result = await client.call(name, input)
      expect(result).toMatchObject({ isError: true, content: [{ type: "text", text: expect.stringMatching(pattern) }] })
      expect(result.structuredContent).toBeUndefined()
    }
    const unknown = await client.request("tools/call", { name: "dex_nothing", arguments: {} })
    expect(unknown.error).toMatchObject({ code: -32602, message: expect.stringMatching(/The tools are dex_search/) })
    expect((await client.request("tools/call", { name: 7 })).error?.code).toBe(-32602)
    expect((await client.request("nothing/here")).error?.code).toBe(-32601)
  })
})

const textOf = (result: Result) => result.content[0]!.text

test("describes its use when it is initialized", async () => {
  const { result } = await shared().request("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  })
  expect(result).toMatchObject({
    serverInfo: { name: "dex" },
    instructions: expect.stringMatching(/dex_search.*dex_timeline.*dex_get/),
  })
})

test("the text of an answer suggests next calls that work, and their cost", async () => {
  const client = shared()
  const follow = async (text: string): Promise<Result> => {
    const [, name, input] = /next: [^{]*?(dex_\w+) (\{.*?\})(?:[; ]|$)/m.exec(text)!
    return client.call(name!, JSON.parse(input!))
  }
  const found = await client.call("dex_search", { query: "mutex" })
  expect(textOf(found)).toMatch(
    /^claude_code:1{8}-\S+#\d+ "Refresh token race" · claude_code · \/code\/api · 2026-11-03/m,
  )
  expect(textOf(found)).toMatch(/its words: dex_get \{.*\} ~\d+ tokens; all of it: ~\d+ tokens/)
  const around = await follow(textOf(found))
  expect(textOf(around)).toMatch(/^>\d+ \[assistant\] .*mutex around the refresh/m)
  const words = await follow(textOf(around))
  expect(textOf(words)).toMatch(/^#7 assistant \(agent\) 2026-11-03T\S+\n {2}I put a mutex/m)
  const cut = await client.call("dex_get", { ids: [AUTH], max_tokens: 300 })
  const numbers = (result: Result) => [...textOf(result).matchAll(/^#(\d+) /gm)].map(([, n]) => Number(n))
  const seen = numbers(cut)
  for (let at = cut; textOf(at).includes("left out"); ) {
    at = await follow(textOf(at))
    seen.push(...numbers(at))
  }
  expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

test("no answer is larger than requested, or than its usual limit", async () => {
  const home = tempDir()
  for (let i = 0; i < 40; i++)
    claudeSession(home, {
      id: `${String(i).padStart(8, "0")}-1111-4111-8111-111111111111`,
      start: "2026-11-03T10:00:00Z",
      turns: Array.from({ length: 12 }, (_, n) => ({ user: `needle ${i} ${n} ${"hay and straw ".repeat(120)}` })),
    })
  await syncHome(home)
  const client = await connect(home)
  const calls: [string, object, number][] = [
    ["dex_search", { query: "needle", limit: 100 }, 1_700],
    ["dex_search", { query: "needle", limit: 100, max_tokens: 700 }, 700],
    ["dex_list", { limit: 1000 }, 3_000],
    ["dex_timeline", { id: "00000001#5" }, 1_200],
    ["dex_get", { ids: ["00000001", "00000002", "00000003"] }, 2_000],
    ["dex_get", { ids: Array.from({ length: 40 }, (_, i) => String(i).padStart(8, "0")), max_tokens: 20_000 }, 20_000],
  ]
  for (const [name, input, most] of calls) {
    const result = await client.call(name, input)
    expect(result.isError).toBeUndefined()
    const tokens = estimateTokens(JSON.stringify(result.structuredContent))
    expect(tokens).toBeLessThanOrEqual(most)
    expect(tokens).toBeGreaterThan(most / 3)
    expect(textOf(result)).toMatch(/left out|next:/)
  }
})

test("a private project is answered only from inside it", async () => {
  const home = await synced()
  expect(await dex(home, ["private", "/code/api"])).toMatchObject({ code: 0 })
  const client = await connect(home)
  const found = await client.call("dex_search", { query: "mutex" })
  expect(found.structuredContent).toMatchObject({ results: [] })
  expect(textOf(found)).not.toContain("private")
  expect(await client.call("dex_get", { ids: [AUTH] })).toMatchObject({ isError: true })
  expect(textOf(await client.call("dex_get", { ids: [AUTH] }))).not.toMatch(/mutex/)
  expect(JSON.stringify(await client.call("dex_list", {}))).not.toMatch(/Refresh token race/)
})

describe("a server that keeps running", () => {
  const home = syncedOnce()
  const running = connectOnce(home)
  const write = (id: string, user: string) => {
    claudeSession(home, { id: `${id}-1111-4111-8111-111111111111`, start: "2026-11-12T10:00:00Z", turns: [{ user }] })
    return Date.now()
  }
  const mutex = async () => (await running().call("dex_search", { query: "mutex" })).structuredContent

  test("finds a conversation that is written meanwhile, and says how fresh the answer is", async () => {
    await running().call("dex_stats")
    const written = write("99999999", "Why does the zeppelin leak?")
    expect(await firstFresh(running(), written, "zeppelin")).toBe(1)
  })

  test("continues with a new index that replaced the old one", async () => {
    expect((await mutex())?.total).toBe(1)
    for (const end of ["", "-wal", "-shm"]) rmSync(join(home, ".dex", `${INDEX_FILE}${end}`), { force: true })
    const written = write("aaaaaaaa", "Why does the airship leak?")
    expect(await firstFresh(running(), written, "airship")).toBe(1)
    expect((await mutex())?.total).toBe(1)
  })

  test("shows nothing of a conversation after it is forgotten", async () => {
    expect((await mutex())?.total).toBe(1)
    expect(await dex(home, ["forget", AUTH, "--yes"])).toMatchObject({ code: 0 })
    expect(await mutex()).toMatchObject({ results: [] })
    expect(await running().call("dex_get", { ids: [AUTH] })).toMatchObject({ isError: true })
  })
})

/** The first result of a search that says that everything written before is included. */
async function firstFresh(client: Client, written: number, query: string): Promise<unknown> {
  for (;;) {
    const result = await client.call("dex_search", { query })
    const asOf = result._meta?.["dex/fresh_as_of"]
    expect(textOf(result)).toContain(`fresh_as_of: ${asOf ?? "not everything is read yet"}`)
    if (Date.parse(String(asOf)) >= written) return result.structuredContent?.total
  }
}

test("knows the session that a client sends with its call", async () => {
  const stats = async (_meta: object) => {
    const { result } = await shared().request("tools/call", { name: "dex_stats", arguments: {}, _meta })
    return result!.structuredContent!.session_id
  }
  expect(await stats({ "x-codex-turn-metadata": { thread_id: "t-1" } })).toBe("codex:t-1")
  expect(await stats({ "x-codex-turn-metadata": '{"thread_id":"t-2"}' })).toBe("codex:t-2")
  expect(await stats({ "x-codex-turn-metadata": "nonsense" })).toBeUndefined()
})

test("if nothing was ever read, the first answer already contains something", async () => {
  const home = tempDir()
  smallHome(home)
  const client = await connect(home)
  expect((await client.call("dex_search", { query: "mutex" })).structuredContent).toMatchObject({ total: 1 })
})

test("a search is narrowed by file, role and tool, as on the command line", async () => {
  for (const [input, args] of [
    [{ file: "auth.ts" }, ["--file", "auth.ts"]],
    [{ query: "token", role: "user" }, ["token", "--role", "user"]],
    [{ query: "auth", tool: "Read" }, ["auth", "--tool", "Read"]],
  ] as const) {
    const { structuredContent } = await shared().call("dex_search", input)
    const { stdout } = await dex(home, ["search", ...args, "--json"])
    expect(structuredContent).toEqual(JSON.parse(stdout))
    expect(JSON.parse(stdout).results.length).toBeGreaterThan(0)
  }
})

test("an outline shows the cost of reading each message, and is not longer than on the command line", async () => {
  const text = textOf(await shared().call("dex_get", { ids: [AUTH], format: "outline", max_tokens: 20_000 }))
  const { stdout } = await dex(home, ["show", AUTH, "--format", "outline"])
  const sizes = [...stdout.matchAll(/^ *(\d+) {2}\[.*\((\S+) tokens\)/gm)].map(
    ([, number, size]) => `#${number} ~${size}`,
  )
  expect(sizes.length).toBeGreaterThan(2)
  expect([...text.matchAll(/^(#\d+) \w+(?: \([^)]*\))? (~\S+): \S/gm)].map(([, at, size]) => `${at} ${size}`)).toEqual(
    sizes,
  )
  const body = (output: string, from: RegExp) => output.slice(output.search(from))
  expect(body(text, /^#/m).replace(/\n(?:fresh_as_of|note|next): .*$/gm, "").length).toBeLessThanOrEqual(
    body(stdout, /^ *\d+ {2}\[/m).trimEnd().length,
  )
})

test("agents that may only read get tools that only read", () => {
  const writing = offeredTools.filter(({ mcp }) => mcp.writes).map(({ mcp }) => mcp.name)
  expect(writing).toContain("dex_note")
  expect(RETRIEVAL_TOOLS.filter((tool) => writing.includes(tool))).toEqual([])
  const { content } = opencodeSubagent("dex")
  const allowed = [...content.matchAll(/^ {2}"(dex_[^"]+)": allow$/gm)].map(([, pattern]) => pattern)
  expect(allowed).toEqual(RETRIEVAL_TOOLS.map((tool) => `dex_${tool}`))
})
