import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { type Client, connect, connectOnce } from "./client.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const RECIPES = ["digest", "evaluation", "preferences", "rules"]
const ERAS = ["2025-11-25", "2026-07-28"]
const uriOf = (ref: string) => `dex://conversation/${encodeURIComponent(ref)}`

type Resource = { uri: string; name: string; title: string; description: string; annotations?: object }

async function readText(client: Client, uri: string): Promise<string> {
  const { result, error } = await client.request("resources/read", { uri })
  expect(error).toBeUndefined()
  const [only, ...others] = result!.contents as { uri: string; mimeType: string; text: string }[]
  expect(others).toEqual([])
  expect(only).toMatchObject({ uri, mimeType: "text/plain" })
  return only!.text
}

/** Without what changes from call to call. */
const stable = (text: string) => text.replace(/\nfresh_as_of: .*$/, "")

const home = syncedOnce()
const spokenIn = Object.fromEntries(ERAS.map((era) => [era, connectOnce(home, { era })]))

describe.each(ERAS)("in protocol %s", (era) => {
  const spoken = spokenIn[era]!

  test("lists conversations, newest first, and reads each like dex_get", async () => {
    const client = spoken()
    const { result } = await client.request("resources/list")
    const resources = result!.resources as Resource[]
    expect(result!.nextCursor).toBeUndefined()
    expect(resources.map(({ name }) => name)).toEqual(["claude_code:22222222-2222-4222-8222-222222222222", AUTH])
    expect(resources[1]).toMatchObject({
      uri: uriOf(AUTH),
      title: "Refresh token race",
      description: expect.stringMatching(/^claude_code · \/code\/api · 2026-11-03 · 10 messages, ~\d+ tokens$/),
      annotations: { lastModified: expect.stringMatching(/^2026-11-03T/) },
    })
    for (const { uri, name } of resources) {
      const got = await client.call("dex_get", { ids: [name], max_tokens: 10_000 })
      expect(stable(await readText(client, uri))).toBe(stable(got.content[0]!.text))
    }
    const templates = (await client.request("resources/templates/list")).result!.resourceTemplates
    expect(templates).toMatchObject([{ uriTemplate: "dex://conversation/{ref}", mimeType: "text/plain" }])
  })

  test("reads around a message, by a prefix, and whether or not the ref is encoded", async () => {
    const client = spoken()
    const around = await readText(client, uriOf(`${AUTH}#7`))
    expect(around).toMatch(/^#7 assistant \(agent\) .*\n {2}I put a mutex/m)
    expect([...around.matchAll(/^#(\d+) /gm)].map(([, n]) => Number(n))).toEqual([5, 6, 7, 8, 9])
    expect(around).toMatch(/^note: there is more before and after/m)
    expect(around).toMatch(/\nfresh_as_of: /)
    for (const uri of [`dex://conversation/${AUTH}#7`, uriOf("11111111#7"), "dex://conversation/11111111%237"])
      expect(stable(await readText(client, uri))).toBe(stable(around))
  })

  test("a failure is an error that says what to do", async () => {
    const client = spoken()
    const cases: [string, RegExp][] = [
      ["dex://conversation/zzzz", /^No conversation "zzzz" was found. `dex_list` lists/],
      [uriOf(`${AUTH}#99`), /^There is no message 99 in this conversation; the last one is 10/],
      ["dex://conversation/", /A conversation is dex:\/\/conversation\/\{ref\}/],
      ["dex://conversation/%", /A conversation is/],
      ["dex://conversation/7", /^There is no row 7/],
      ["file:///etc/passwd", /A conversation is/],
    ]
    for (const [uri, message] of cases)
      expect((await client.request("resources/read", { uri })).error).toMatchObject({
        code: -32602,
        message: expect.stringMatching(message),
        data: { uri },
      })
    for (const cursor of ["x", "-1", "0", "500", "1e2", "99999999999999999999"])
      expect((await client.request("resources/list", { cursor })).error).toMatchObject({ code: -32602 })
  })

  test("prompts name tools that exist, in few words", async () => {
    const client = spoken()
    const { result } = await client.request("prompts/list")
    const prompts = result!.prompts as { name: string; arguments: { name: string; required: boolean }[] }[]
    expect(prompts.map(({ name }) => name)).toEqual(["recall", "hand_over", "today", ...RECIPES])
    const tools = ((await client.request("tools/list")).result!.tools as { name: string }[]).map(({ name }) => name)
    const inputs: Record<string, object> = {
      recall: { topic: 'the "token" race' },
      hand_over: { ref: "claude_code:1f3c", to: "codex" },
      today: {},
    }
    for (const name of Object.keys(inputs)) {
      const got = (await client.request("prompts/get", { name, arguments: inputs[name] })).result!
      const [message] = got.messages as { role: string; content: { text: string } }[]
      expect(message!.role).toBe("user")
      const named = [...message!.content.text.matchAll(/dex_\w+/g)].map(([tool]) => tool)
      expect(named.length).toBeGreaterThan(0)
      expect(named.filter((tool) => !tools.includes(tool))).toEqual([])
      expect(estimateTokens(message!.content.text)).toBeLessThan(200)
      for (const value of Object.values(inputs[name]!)) expect(message!.content.text).toContain(JSON.stringify(value))
    }
    const digest = (await client.request("prompts/get", { name: "digest" })).result!
    expect(JSON.stringify(digest.messages)).toContain("dex_list")
    expect((await client.request("prompts/get", { name: "recall" })).error).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^topic is missing/),
    })
    expect((await client.request("prompts/get", { name: "none" })).error).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/The prompts are recall, hand_over, today/),
    })
  })
})

test("if nothing is stored, nothing is listed", async () => {
  const client = await connect(tempDir())
  expect((await client.request("resources/list")).result).toMatchObject({ resources: [] })
})

test("the calls in a prompt work", async () => {
  const client = spokenIn["2025-11-25"]!()
  for (const [name, input] of [
    ["hand_over", { ref: AUTH }],
    ["today", {}],
  ] as const) {
    const { result } = await client.request("prompts/get", { name, arguments: input })
    const [{ content }] = result!.messages as [{ content: { text: string } }]
    const [, tool, args] = /(dex_\w+) (\{.*?\})[;.]/.exec(content.text)!
    expect((await client.call(tool!, JSON.parse(args!))).isError).toBeUndefined()
  }
})

test("a list has pages and an end, each conversation once, and a long one is read in pieces", async () => {
  const home = tempDir()
  const ids = Array.from({ length: 530 }, (_, i) => `${String(i).padStart(8, "0")}-1111-4111-8111-111111111111`)
  const long = Array.from({ length: 90 }, (_, n) => ({ user: `turn ${n} ${"hay and straw ".repeat(40)}` }))
  for (const [i, id] of ids.entries())
    claudeSession(home, {
      id,
      start: new Date(Date.UTC(2026, 0, 1) + i * 3_600_000).toISOString(),
      turns: i < 529 ? [{ user: "turn" }] : long,
    })
  await syncHome(home)
  const client = await connect(home)
  const seen: string[] = []
  let pages = 0
  for (let cursor: string | undefined = ""; cursor !== undefined; pages++) {
    const { result } = await client.request("resources/list", cursor === "" ? {} : { cursor })
    seen.push(...(result!.resources as Resource[]).map(({ name }) => name))
    cursor = result!.nextCursor as string | undefined
  }
  expect(pages).toBe(10)
  expect(seen).toEqual(
    ids
      .slice(30)
      .reverse()
      .map((id) => `claude_code:${id}`),
  )

  let text = await readText(client, uriOf(`claude_code:${ids[529]}`))
  expect(estimateTokens(text)).toBeGreaterThan(5_000)
  expect(estimateTokens(text)).toBeLessThanOrEqual(10_000)
  const numbers = (of: string) => [...of.matchAll(/^#(\d+) /gm)].map(([, n]) => Number(n))
  const read = numbers(text)
  expect(read.length).toBeLessThan(90)
  while (text.includes("left out")) {
    const [, name, input] = /next: (dex_\w+) (\{.*\})$/m.exec(text)!
    text = (await client.call(name!, JSON.parse(input!))).content[0]!.text
    read.push(...numbers(text))
  }
  expect(read).toEqual(Array.from({ length: 90 }, (_, i) => i + 1))
})

describe("a private project", () => {
  const home = sharedTempDir()
  const project = join(home, "secret")
  beforeAll(async () => {
    mkdirSync(join(project, ".git"), { recursive: true })
    smallHome(home)
    claudeSession(home, {
      id: "44444444-4444-4444-8444-444444444444",
      cwd: project,
      start: "2026-11-05T10:00:00Z",
      title: "The zeppelin plan",
      turns: [{ user: "Where does the zeppelin land?" }],
    })
    await syncHome(home)
    expect(await dex(home, ["private", project])).toMatchObject({ code: 0 })
  })

  test.each(ERAS)("in protocol %s is listed and read only from inside it", async (era) => {
    const uri = uriOf("claude_code:44444444-4444-4444-8444-444444444444")
    const outside = await connect(home, { era })
    expect(JSON.stringify(await outside.request("resources/list"))).not.toMatch(/zeppelin|4444/)
    const refused = await outside.request("resources/read", { uri })
    expect(refused.error?.message).toMatch(/^No conversation "claude_code:44444444/)
    expect(JSON.stringify(refused)).not.toMatch(/zeppelin/)
    const inside = await connect(home, { era, cwd: project })
    expect(JSON.stringify(await inside.request("resources/list"))).toMatch(/The zeppelin plan/)
    expect(await readText(inside, uri)).toMatch(/Where does the zeppelin land/)
  })
})
