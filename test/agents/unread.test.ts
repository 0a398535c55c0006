import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { agents } from "../../src/agents/registry.ts"
import { findUnreadStores, UNREAD_STORES } from "../../src/agents/unread.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

function put(home: string, ...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), "{}")
  }
}

const foundIn = (home: string, env: Record<string, string> = {}, otherHomes: string[] = []) =>
  findUnreadStores({ home, env, platform: "linux", otherHomes }).map(({ name, path, files }) => [name, path, files])

test("reports stores that are not read, with the number of files", () => {
  const home = tempDir()
  put(
    home,
    ".snowflake/cortex/conversations/a.json",
    ".snowflake/cortex/conversations/b.json",
    ".rovodev/sessions/x/session_context.json",
  )
  expect(foundIn(home)).toEqual([
    ["Cortex Code", join(home, ".snowflake/cortex/conversations"), 2],
    ["Rovo Dev", join(home, ".rovodev/sessions"), 1],
  ])
})

test("ignores a folder without conversations, an empty one and a link", () => {
  const home = tempDir()
  put(home, ".omnigent/settings.toml", "elsewhere/a.json")
  mkdirSync(join(home, ".mux/sessions"), { recursive: true })
  mkdirSync(join(home, ".zencoder"))
  symlinkSync(join(home, "elsewhere"), join(home, ".zencoder/sessions"))
  expect(foundIn(home)).toEqual([])
})

test("searches the folder that a variable names, and the other homes that the user named", () => {
  const [home, other, named] = [tempDir(), tempDir(), tempDir()]
  put(named, "sessions/a/events.jsonl")
  put(other, ".zencoder/sessions/a.json")
  expect(foundIn(home, { MUX_ROOT: named }, [other])).toEqual([
    ["Mux", join(named, "sessions"), 1],
    ["Zencoder", join(other, ".zencoder/sessions"), 1],
  ])
})

test("dex doctor sources reports them, and why encrypted ones cannot be read", async () => {
  const home = tempDir()
  put(home, ".snowflake/cortex/conversations/a.json", ".codeium/windsurf/cascade/b.pb")
  await warmDex(home, ["sync"])
  const { stdout } = await warmDex(home, ["sources"])
  expect(stdout).toContain("found Cortex Code in ~/.snowflake/cortex/conversations, 1 file, not read yet")
  expect(stdout).toMatch(
    /found Windsurf's Cascade in ~\/\.codeium\/windsurf\/cascade, 1 file, cannot be read: encrypted/,
  )
})

test("every store has a unique name, is not a read agent, and is listed in docs/sources.md", () => {
  const sources = UNREAD_STORES.map(({ source }) => source)
  expect(new Set(sources).size).toBe(sources.length)
  expect(UNREAD_STORES.map(({ name }) => name).filter((name) => agents.some((agent) => agent.name === name))).toEqual(
    [],
  )
  const page = readFileSync("docs/sources.md", "utf8")
  expect(UNREAD_STORES.map(({ name }) => name).filter((name) => !page.includes(`| ${name} |`))).toEqual([])
})
