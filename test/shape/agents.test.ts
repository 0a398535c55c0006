import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { agents, isDexSource, sourceIds } from "../../src/agents/registry.ts"

const ROOT = join(import.meta.dirname, "../..")
const IN_SRC = /^(?:kit|connectors|hooks|outside|registry|unread)$/
const IN_MORE = /^(?:records|claude-code-variants)$/

test("every agent's folder or file is in the list, under the name that its refs begin with", () => {
  const named = (folder: string, other: RegExp) =>
    readdirSync(join(ROOT, folder))
      .map((name) => name.replace(/\.ts$/, ""))
      .filter((name) => !other.test(name))
      .map((name) => name.replaceAll("-", "_"))
  const own = agents.filter(({ variantOf }) => variantOf === undefined).map(({ source }) => source)
  expect([...named("src/agents", IN_SRC), ...named("packages/more-agents/src", IN_MORE)].sort()).toEqual(own.sort())
})

test("an agent's connector has the agent's name", async () => {
  for (const { source, connector } of agents) if (connector) expect((await connector()).source).toBe(source)
})

test("a conversation that can be read can be resumed and handed over, or the agent's record says why not", () => {
  const read = agents.filter(({ connector, source }) => connector && !isDexSource(source))
  const unclear = read.filter(
    ({ resume, open, whyMissing = {} }) =>
      (resume === undefined) !== (whyMissing.resume !== undefined) ||
      (open === undefined) !== (whyMissing.open !== undefined),
  )
  expect(unclear.map(({ name }) => name)).toEqual([])
})

test("agents' names and aliases are unique, and every name can begin a ref", () => {
  const typed = agents.flatMap(({ source, aliases = [] }) => [source, ...aliases])
  expect(new Set(typed).size).toBe(typed.length)
  expect(sourceIds.filter((source) => !/^[a-z][a-z0-9_]{0,39}$/.test(source))).toEqual([])
})
