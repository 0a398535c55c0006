import { expect, test } from "vitest"
import { byName, createCounts } from "../../src/core/by-name.ts"
import { listOf, object, optional, readAs, text } from "../../src/core/schema.ts"
import { resolveAgents } from "../../src/integrations/agents.ts"
import { commandsToCalls } from "../../src/serve/mcp/calls.ts"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"
import { putSession, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

/** Names that every plain object seems to have. */
const INHERITED = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "isPrototypeOf"]

test("dex doctor sources counts records of any type, whatever the type is called", async () => {
  const home = tempDir()
  const transcript = writer()
  transcript.prompt("hello")
  for (const type of INHERITED) for (const n of [1, 2]) transcript.add({ type, n })
  putSession(home, transcript.records)
  await syncHome(home)
  const { stdout } = await dex(home, ["sources", "--json"])
  const { sources } = JSON.parse(stdout) as { sources: { source: string; unknown: Record<string, number> }[] }
  const { unknown } = sources.find(({ source }) => source === "claude_code")!
  expect(Object.entries(unknown).sort()).toEqual(INHERITED.map((type) => [type, 2]).sort())
  const shown = await dex(home, ["sources"])
  expect(shown.stdout + shown.stderr).not.toContain("native code")
})

test("counts and tables treat names that JavaScript's objects inherit like any other", () => {
  const counts = createCounts()
  for (const name of INHERITED) counts.add(name)
  counts.add("__proto__", 4)
  expect(JSON.stringify(counts.all())).toBe(
    `{${INHERITED.map((name) => `"${name}":${name === "__proto__" ? 5 : 1}`).join(",")}}`,
  )
  for (const name of INHERITED) expect(byName({ a: 1 }, name)).toBeUndefined()
})

test("no inherited name is accepted as a field, an agent, a status or a command", () => {
  for (const name of INHERITED) {
    const input = JSON.parse(`{"query": "x", "${name}": 1}`)
    expect(readAs(object({ query: text(), ids: optional(listOf(text())) }), input)).toEqual({
      wrong: `${name} is not known`,
    })
    expect(() => resolveAgents([name])).toThrow(/dex does not know the agent/)
    const line = `\`dex search x --${name.toLowerCase()} 1\``
    expect(commandsToCalls(line, offeredTools)).toBe(line)
  }
})
