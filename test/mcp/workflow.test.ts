import { expect, test } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import { INSTRUCTIONS } from "../../src/serve/mcp/definitions.ts"
import { synced } from "../support/synced.ts"
import { warmDex as dex } from "../support/warm.ts"
import { connect } from "./client.ts"

test("everything that the guide and the instructions name exists: tools over MCP, commands in a shell", async () => {
  const home = await synced()
  const client = await connect(home)
  const tools = ((await client.request("tools/list")).result!.tools as { name: string }[]).map(({ name }) => name)
  const guide = (await client.call("dex_guide")).content[0]!.text
  const named = (text: string) =>
    [...new Set([...text.matchAll(/\b(?:dex|context|suggestion)_[a-z]\w*/g)].map(([name]) => name))].sort()
  expect(named(guide)).toEqual(tools.filter((name) => name !== "dex_guide").sort())
  expect(named(INSTRUCTIONS).filter((name) => !tools.includes(name))).toEqual([])
  expect(estimateTokens(INSTRUCTIONS)).toBeLessThan(250)
  // For an agent or subagent without MCP: the same answers in a shell.
  const commands = [...guide.matchAll(/\bdex ((?:search|show|list)(?: --[a-z]+)?)/g)].map(([, typed]) => typed!)
  expect(commands).toEqual(["search", "show --timeline", "show", "list"])
  const words: Record<string, string[]> = { search: ["mutex"], show: ["11111111#7"], list: [] }
  for (const typed of commands.map((command) => command.split(" ")))
    expect(await dex(home, [...typed, ...words[typed[0]!]!, "--json"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{/),
    })
})
