import { rmSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { mistralVibeConnector } from "../../packages/more-agents/src/mistral-vibe.ts"
import { conversationsOf, homeOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/mistral_vibe"
const TOOLS = join(FIXTURES, "2.18-tools-subagent")
const FORK = join(FIXTURES, "2.5-search-replace-fork")
testConnector(mistralVibeConnector, FIXTURES)

const MAIN = "a1b2c3d4-0000-4000-8000-000000000001"
const SUBAGENT = "b2c3d4e5-0000-4000-8000-000000000002"
const FIRST = "c3d4e5f6-0000-4000-8000-000000000003"
const FORKED = "d4e5f6a7-0000-4000-8000-000000000004"

test("searches Vibe's own folder, or VIBE_HOME", () => {
  const rootsOf = (env: Record<string, string>) =>
    mistralVibeConnector.roots({ home: join("/home", "dev"), env, platform: "win32" })
  expect(rootsOf({})).toEqual([join("/home", "dev", ".vibe", "logs", "session")])
  expect(rootsOf({ VIBE_HOME: "~/vibe" })).toEqual([join("/home", "dev", "vibe", "logs", "session")])
})

test("a subagent's folder inside a session's gives its parent", async () => {
  const all = await conversationsOf(mistralVibeConnector, await homeOf(TOOLS))
  expect(all.get(SUBAGENT)).toMatchObject({ kind: "subagent", parent: { id: MAIN } })
  expect(all.get(MAIN)).toMatchObject({ kind: "person", title: { text: "Sorted numbats", from: "person" } })
})

test("a fork's copied messages keep their keys", async () => {
  const all = await conversationsOf(mistralVibeConnector, await homeOf(FORK))
  const keysOf = (id: string) => all.get(id)!.messages.map(({ key }) => key)
  expect(all.get(FORKED)!.resume_of).toBe(FIRST)
  expect(keysOf(FORKED).slice(0, 4)).toEqual(keysOf(FIRST).slice(0, 4))
  expect(keysOf(FIRST)).not.toContain(keysOf(FORKED)[4])
})

test("a title that repeats the prompt is ignored; a generated one is used", async () => {
  const all = await conversationsOf(mistralVibeConnector, await homeOf(FORK))
  expect(all.get(FIRST)!.title).toBeUndefined()
  expect(all.get(FORKED)!.title).toEqual({ text: "Bandicoots and bilbies", from: "agent" })
})

test("a session without its meta.json is read, and named by its folder", async () => {
  const home = await homeOf(TOOLS)
  const [unit] = await unitsOf(mistralVibeConnector, home)
  rmSync(join(unit!.path, "../meta.json"))
  const all = await conversationsOf(mistralVibeConnector, home)
  expect(all.get("session_20261110_090000_a1b2c3d4")!.messages).toHaveLength(15)
})
