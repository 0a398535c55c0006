import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { agents, isOwn, sourceIds } from "../../src/agents/registry.ts"

const FOLDER = join(import.meta.dirname, "../../src/agents")
const folders = readdirSync(FOLDER, { withFileTypes: true }).filter(
  (entry) => entry.isDirectory() && entry.name !== "kit",
)

test("every agent's folder is in the list, under the name that its refs begin with", () => {
  const own = agents.filter(({ variantOf }) => variantOf === undefined)
  expect(folders.map(({ name }) => name.replaceAll("-", "_")).sort()).toEqual(own.map(({ source }) => source).sort())
})

test("an agent's connector has the agent's name", async () => {
  for (const { source, connector } of agents) if (connector) expect((await connector()).source).toBe(source)
})

test("a conversation that can be read can be resumed and handed over, or the agent's record says why not", () => {
  const read = agents.filter(({ connector, source }) => connector && !isOwn(source))
  const unclear = read.filter(
    ({ resume, open, without = {} }) =>
      (resume === undefined) !== (without.resume !== undefined) ||
      (open === undefined) !== (without.open !== undefined),
  )
  expect(unclear.map(({ name }) => name)).toEqual([])
})

test("names are given once, and can begin a ref", () => {
  const typed = agents.flatMap(({ source, aliases = [] }) => [source, ...aliases])
  expect(new Set(typed).size).toBe(typed.length)
  expect(sourceIds.filter((source) => !/^[a-z][a-z0-9_]{0,39}$/.test(source))).toEqual([])
})
