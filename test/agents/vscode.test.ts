import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { vscodeConnector } from "../../packages/more-agents/src/vscode/connector.ts"
import { replaySession } from "../../packages/more-agents/src/vscode/parse.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/vscode"
const LOG = join(FIXTURES, "1.109-operation-log")
const JSON_FILES = join(FIXTURES, "1.100-json")
testConnector(vscodeConnector, FIXTURES)

const id = (n: number) => `5c000000-0000-4000-8000-00000000000${n}`

test("searches the user's folder of every edition, on each system", () => {
  const at = (platform: NodeJS.Platform, env = {}) => vscodeConnector.roots({ home: join("/home/dev"), env, platform })
  const editions = ["Code", "Code - Insiders", "VSCodium"]
  expect(at("linux")).toEqual(editions.map((name) => join("/home/dev/.config", name, "User")))
  expect(at("darwin")[0]).toBe(join("/home/dev/Library/Application Support/Code/User"))
  expect(at("win32", { APPDATA: "/roaming" })[1]).toBe(join("/roaming/Code - Insiders/User"))
})

test("replays a log: an entry that appends at a position replaces everything after it", () => {
  const log = [
    { kind: 0, v: { requests: [{ response: [1, 2, 3] }] } },
    { kind: 2, k: ["requests", 0, "response"], i: 1, v: [4] },
    { kind: 1, k: ["title"], v: "t" },
    { kind: 3, k: ["title"] },
    { kind: 2, k: ["requests"], v: [{}] },
  ]
  const before = structuredClone(log)
  expect(replaySession(log, () => expect.fail())).toEqual({ requests: [{ response: [1, 4] }, {}], title: undefined })
  expect(log).toEqual(before)
})

test("counts a change to something missing, and never reaches JavaScript's own objects", () => {
  let skipped = 0
  const bad = [
    { kind: 1, k: ["__proto__", "polluted"], v: 1 },
    { kind: 1, k: ["constructor", "prototype", "polluted"], v: 1 },
    { kind: 2, k: ["requests", 1e9], v: [1] },
    { kind: 1, k: [], v: 1 },
  ]
  expect(replaySession([{ kind: 0, v: { requests: [] } }, ...bad], () => skipped++)).toEqual({ requests: [] })
  expect(skipped).toBe(bad.length)
  expect(({} as { polluted?: number }).polluted).toBeUndefined()
})

test("a tool's change is not repeated from the window, but changes that only the window has are read", async () => {
  const session = (await conversationsOf(vscodeConnector, await homeOf(LOG))).get(id(1))!
  const edited = session.messages
    .flatMap(({ effects = [] }) => effects)
    .filter((one) => one.type === "file" && one.action === "edited")
  expect(edited).toMatchObject([
    { path: "/home/dev/proj/total.ts", added: 1, removed: 1 },
    { path: "/home/dev/proj/notes.md", added: 2, removed: 0 },
  ])
})

test("a retracted request is abandoned with its answer", async () => {
  const session = (await conversationsOf(vscodeConnector, await homeOf(LOG))).get(id(1))!
  expect(session.messages.filter(({ abandoned }) => abandoned).map(({ key }) => key)).toEqual([
    "request_2",
    "request_2:response",
  ])
})

test("does not store people's names, drafts, attachments, rendered prompts and encrypted thoughts", async () => {
  for (const fixture of [LOG, JSON_FILES]) {
    const kept = []
    for (const unit of await unitsOf(vscodeConnector, await homeOf(fixture)))
      kept.push(...(await recordsOf(vscodeConnector, unit)))
    expect(kept.length).toBeGreaterThan(4)
    expect(JSON.stringify(kept)).not.toMatch(/NOT-KEPT/)
  }
})

const sample = sampleAt("copilot-vscode/synthetic/workspaceStorage")
test.skipIf(sample === undefined)("reads the shared sample: a prompt, its answer, an edit and its tokens", async () => {
  const home = tempDir()
  const storage = join(home, ".config", "Code", "User", "workspaceStorage")
  mkdirSync(storage, { recursive: true })
  cpSync(sample!, storage, { recursive: true })
  const [session] = [...(await conversationsOf(vscodeConnector, home)).values()]
  expect(session).toMatchObject({ title: { text: "Fix the test" }, cwds: ["/home/dev/app"] })
  expect(session!.messages.map(({ role }) => role)).toEqual(["user", "assistant"])
  expect(session!.messages[1]).toMatchObject({ model: "claude-sonnet-4-5", usage: { input: 1000, output: 50 } })
  expect(session!.messages[1]!.effects).toMatchObject([{ path: "/home/dev/app/a.ts", action: "edited" }])
})
