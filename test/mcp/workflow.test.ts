import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import { INSTRUCTIONS } from "../../src/mcp/definitions.ts"
import { dex } from "../support/dex.ts"
import { smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { connect, type Result } from "./client.ts"

const CORPUS = fileURLToPath(new URL("../../../shared/corpus/claude-code-real.tar.xz", import.meta.url))
const LIMIT = 5_000
const QUERIES = ["refresh token", "flaky test", "race condition in the hook", "git worktree", "error", "performance"]

test.skipIf(!existsSync(CORPUS))(
  "search, timeline and get over a genuine history take at most 5,000 tokens, as text and as data",
  { timeout: 240_000 },
  async () => {
    const home = tempDir()
    mkdirSync(join(home, ".claude"))
    execFileSync("tar", ["xJf", CORPUS, "-C", join(home, ".claude"), "--strip-components=1"])
    expect((await dex(home, ["sync"])).code).toBe(0)
    const client = await connect(home)
    const sizes = (results: Result[]) => ({
      text: results.reduce((sum, { content }) => sum + estimateTokens(content[0]!.text), 0),
      data: results.reduce((sum, { structuredContent }) => sum + estimateTokens(JSON.stringify(structuredContent)), 0),
    })
    for (const query of QUERIES) {
      const found = await client.call("dex_search", { query })
      const [best] = found.structuredContent!.results as { id: string; message_index: number }[]
      const id = `${best!.id}#${best!.message_index}`
      const around = await client.call("dex_timeline", { id })
      // As the hints say, and by an agent that asks for all of it at once.
      for (const ids of [[id], [best!.id]]) {
        const steps = [found, around, await client.call("dex_get", { ids })]
        expect(steps.filter(({ isError }) => isError)).toEqual([])
        const { text, data } = sizes(steps)
        console.log(
          `${query}, ${ids[0] === id ? "around a message" : "whole"}: ${text} tokens as text, ${data} as data`,
        )
        expect(Math.max(text, data)).toBeLessThanOrEqual(LIMIT)
        expect(Math.min(text, data)).toBeGreaterThan(500)
      }
    }
  },
)

if (!existsSync(CORPUS)) console.log("NOT RUN: the MCP workflow over a genuine history; it is not on this machine")

test("what the guide and the instructions name is there: tools over MCP, commands in a shell", async () => {
  const home = tempDir()
  smallHome(home)
  await dex(home, ["sync"])
  const client = await connect(home)
  const tools = ((await client.request("tools/list")).result!.tools as { name: string }[]).map(({ name }) => name)
  const guide = (await client.call("dex_guide")).content[0]!.text
  const named = (text: string) =>
    [...new Set([...text.matchAll(/\b(?:dex|context|suggestion)_[a-z]\w*/g)].map(([name]) => name))].sort()
  expect(named(guide)).toEqual(tools.filter((name) => name !== "dex_guide").sort())
  expect(named(INSTRUCTIONS).filter((name) => !tools.includes(name))).toEqual([])
  expect(estimateTokens(INSTRUCTIONS)).toBeLessThan(250)
  // An agent or subagent without MCP: the same answers in a shell.
  const commands = [...guide.matchAll(/\bdex (search|timeline|show|list)\b/g)].map(([, name]) => name)
  expect(commands).toEqual(["search", "timeline", "show", "list"])
  const args: Record<string, string[]> = { search: ["mutex"], timeline: ["11111111#7"], show: ["11111111#7"], list: [] }
  for (const name of commands)
    expect(await dex(home, [name!, ...args[name!]!, "--json"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{/),
    })
})
