import { join } from "node:path"
import { expect, test } from "vitest"
import { ampConnector } from "../../packages/more-agents/src/amp.ts"
import { ampRoots } from "../../packages/more-agents/src/records.ts"
import { parsedAt, sampleAt } from "../support/samples.ts"
import { conversationsOf, homeOf, testConnector } from "./contract.ts"

const FIXTURES = "test/fixtures/amp"
const THREADS = join(FIXTURES, "0.0.17-threads")
const LATER = join(FIXTURES, "0.0.18-shell-command")
testConnector(ampConnector, FIXTURES)

const only = async (fixture: string) =>
  (await conversationsOf(ampConnector, await homeOf(fixture))).values().next().value!

test("finds Amp's threads on every system", () => {
  expect(ampRoots({ home: "/h", env: {}, platform: "darwin" })).toEqual([join("/h/.local/share/amp/threads")])
  expect(ampRoots({ home: "/h", env: { XDG_DATA_HOME: "/d" }, platform: "linux" })).toEqual([join("/d/amp/threads")])
})

test("a failed edit and a refused command have no effects", async () => {
  const { messages } = await only(THREADS)
  const effects = messages.flatMap(({ effects: done = [] }) => done)
  expect(effects.flatMap((effect) => (effect.type === "file" ? `${effect.action} ${effect.path}` : []))).toEqual([
    "read /home/dev/proj/src/kick.ts",
    "edited /home/dev/proj/src/kick.ts",
    "edited /home/dev/proj/docs/kick.md",
  ])
  expect(effects.filter((effect) => effect.type === "command" && effect.failed)).toHaveLength(2)
})

test("for OpenAI's models, tokens that were not read from the cache are input", async () => {
  const { messages } = await only(LATER)
  expect(messages.find(({ model }) => model === "gpt-5.4")!.usage).toEqual({
    input: 150,
    output: 10,
    cache_read: 0,
    cache_write: 0,
  })
})

const sample = sampleAt("amp/synthetic/T-019b9d03-62e3-772f-9780-3e637f90eaec.json")
test.skipIf(sample === undefined)(
  "reads a thread written from a description: three messages and one edit",
  async () => {
    const { conversations, unknown } = await parsedAt(ampConnector, sample!, "T-019b9d03-62e3-772f-9780-3e637f90eaec")
    expect(unknown).toEqual({})
    expect(conversations).toMatchObject([
      { cwds: ["/home/dev/app"], git_branch: "main", title: { text: "Fix flaky date test" } },
    ])
    expect(conversations[0]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"])
    expect(conversations[0]!.messages[2]!.effects).toMatchObject([
      { type: "file", action: "edited", added: 1, removed: 1 },
    ])
  },
)
