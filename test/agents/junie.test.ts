import { join } from "node:path"
import { expect, test } from "vitest"
import { junieConnector } from "../../packages/more-agents/src/junie.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/junie"
const BLOCKS = join(FIXTURES, "3110-blocks-usage")
testConnector(junieConnector, FIXTURES)

const session = async () => [...(await conversationsOf(junieConnector, await homeOf(BLOCKS))).values()][0]!

test("a block that grows is one message, with its last text", async () => {
  const texts = (await session()).messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "text" ? part.text : [])),
  )
  expect(texts).toContain("I look at the file first.")
  expect(texts).toContain("The rate is 19 now.")
  expect(texts).not.toContain("I look")
  expect(texts).not.toContain("draft")
})

test("the folder and the name come from the last entry of the list, and a name in the session is preferred", async () => {
  expect(await session()).toMatchObject({ cwds: ["/home/dev/proj"], title: { text: "Tax of 19 percent" } })
})

test("a prompt that was dropped is abandoned, and what the program adds to a prompt is not the person's", async () => {
  const prompts = (await session()).messages.filter(({ role }) => role === "user")
  expect(prompts.map(({ key, abandoned }) => [key, abandoned])).toMatchObject([
    ["r1", undefined],
    ["r2", true],
    [expect.any(String), undefined],
  ])
  expect(prompts[0]!.parts[0]!.text).toBe("Raise the tax to 19")
})

test("all tokens are counted once", async () => {
  const usages = (await session()).messages.flatMap(({ usage }) => usage ?? [])
  expect(usages.reduce((sum, { input }) => sum + input, 0)).toBe(60)
  expect(usages.reduce((sum, { cache_read }) => sum + cache_read, 0)).toBe(640)
})

test("does not store environment variables, the agent's state and copies of files", async () => {
  for (const unit of await unitsOf(junieConnector, await homeOf(BLOCKS)))
    expect(JSON.stringify(await recordsOf(junieConnector, unit))).not.toContain("NOT-KEPT")
})
