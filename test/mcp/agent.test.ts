import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import { claudeSession } from "../support/home.ts"
import { answersInTurn, modelServer } from "../support/model-server.ts"
import { sharedTempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { connect, connectOnce } from "./client.ts"

const home = sharedTempDir()

beforeAll(async () => {
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-10-03T10:00:00Z",
    turns: [
      { user: "Why is the hook test flaky?" },
      { assistant: "The flaky hook test binds to port 8080, which is taken." },
    ],
  })
  for (const name of ["guide", "other"]) {
    mkdirSync(join(home, name))
    writeFileSync(join(home, name, "hooks.md"), `# Hooks\n\nThe ${name} says: a flaky hook test takes a free port.\n`)
  }
  await syncHome(home)
  for (const name of ["guide", "other"])
    expect(await dex(home, ["docs", "add", `./${name}`])).toMatchObject({ code: 0 })
})

const question = { query: "why is the flaky hook test flaky", use_case: "fixing it" }

describe.each(["2025-11-25", "2026-07-28"])("agent mode in protocol %s", (era) => {
  const spoken = connectOnce(home, { era, args: ["mcp", "agent"] })

  test("offers one tool, within 400 tokens, and nothing else", async () => {
    const client = spoken()
    const { result } = await client.request("tools/list")
    const tools = result!.tools as { name: string; description: string; inputSchema: object }[]
    expect(tools.map(({ name }) => name)).toEqual(["ask_documents"])
    const published = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
    expect(estimateTokens(JSON.stringify(published))).toBeLessThanOrEqual(400)
    expect(await client.request("tools/call", { name: "dex_search", arguments: { query: "x" } })).toMatchObject({
      error: { message: expect.stringContaining("The tools are ask_documents") },
    })
  })

  test("answers with quotes without a model, within 600 tokens", async () => {
    const client = spoken()
    const { structuredContent } = await client.call("ask_documents", question)
    expect(structuredContent).toMatchObject({ extractive: true, confidence: expect.any(String) })
    expect(estimateTokens(JSON.stringify(structuredContent))).toBeLessThanOrEqual(600)
  })
})

test("a caller may narrow the limits of the server, but never widen them", async () => {
  const client = await connect(home, { args: ["mcp", "agent", "-c", "guide"] })
  const refs = async (input: object) => {
    const { structuredContent } = await client.call("ask_documents", { ...question, ...input })
    return (structuredContent!.sources as { ref: string }[]).map(({ ref }) => ref)
  }
  expect(await refs({})).toEqual(["docs:guide/hooks.md§Hooks"])
  expect(await client.call("ask_documents", { ...question, collections: ["other"] })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('The collection "other" is not available here. Available: guide') }],
  })
})

test("a model's answer is returned with its sources, and without the steps in between", async () => {
  const server = await modelServer(
    answersInTurn(
      [{ calls: [{ id: "a", name: "search", arguments: { query: "free port" } }] }],
      [{ text: "Port 8080 is taken [1]." }],
    ),
  )
  const client = await connect(home, { args: ["mcp", "agent"], env: { DEX_LLM_PROVIDER: server.url } })
  // The field was called scope.
  const { structuredContent } = await client.call("ask_documents", { ...question, scope: "history" })
  expect(structuredContent).toMatchObject({ answer: "Port 8080 is taken [1].", extractive: false })
  expect(JSON.stringify(structuredContent)).not.toContain("free port")
})

test("collections, documents, outlines and sections are also available to agents with all tools", async () => {
  const client = await connect(home)
  const text = async (name: string, input: object) => (await client.call(name, input)).content[0]!.text
  expect(await text("dex_list", { in: "docs" })).toMatch(
    /2 collections of documents\.\nguide · \.\/guide · .* · 1 documents, 1 sections/,
  )
  for (const input of [{ collections: ["guide"] }, { collection: "guide" }])
    expect(await text("dex_list", input)).toMatch(
      /^1 of 1 documents, newest first\.\ndocs:guide\/hooks\.md .*\n {2}1 section, ~\d+ tokens\n/,
    )
  expect(await text("dex_get", { ids: ["docs:guide/hooks.md"], format: "outline" })).toContain("# Hooks")
  expect(await text("dex_get", { ids: ["docs:guide/hooks.md§Hooks"] })).toContain("The guide says")
  const found = await text("dex_search", { query: "flaky hook", in: "docs" })
  expect(found).toMatch(/^\d+ documents? shown\.\n/)
  expect(found).toContain("docs:guide/hooks.md§Hooks")
  expect(found).toContain("document (document); 1 section, ~")
  expect(found).not.toContain("1 messages")
  expect(await text("dex_get", { ids: ["docs:guide/nothing.md"] })).toMatch(
    /^No document "docs:guide\/nothing\.md" was found\. `dex_list \{"in":"docs"\}` lists/,
  )
})
