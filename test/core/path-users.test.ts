import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { loadSettings } from "../../src/config/load.ts"
import { spokenKinds } from "../../src/config/proactive.ts"
import { optedInProjects, optIn, optOut } from "../../src/config/projects.ts"
import type { Subscription } from "../../src/core/suggestion.ts"
import { pathBelow } from "../../src/learn/paths.ts"
import { matchingSubscriptions } from "../../src/suggest/subscriptions/matching.ts"
import { tempDir } from "../support/temp.ts"

// Other code that compares paths, on systems where several spellings mean one file.

const { settings: DEFAULTS } = loadSettings({ file: "/nowhere/config.json", env: {} })
const [ONE, OTHER] = ["/Users/me/Caf\u00e9", "/users/ME/cafe\u0301"]

test.each([
  ["darwin", ONE, `${OTHER}/src/A.ts`, "src/A.ts"],
  ["darwin", ONE, `${OTHER}/.claude/worktrees/x/src/a.ts`, "src/a.ts"],
  ["darwin", ONE, `${OTHER}2/src/a.ts`, undefined],
  ["win32", "C:\\Code\\App", "c:/code/APP/src/a.ts", "src/a.ts"],
  ["win32", "C:\\Code\\App\\", "c:\\code\\app\\src\\a.ts", "src/a.ts"],
  ["win32", "C:\\Code\\App", "D:\\code\\app\\src\\a.ts", undefined],
  ["linux", ONE, `${OTHER}/src/A.ts`, undefined],
] as const)("on %s, below %s, %s is %s", (platform, project, path, below) => {
  expect(pathBelow(project, path, platform)).toBe(below)
})

test("a muted project is silent in every spelling", () => {
  const mutes = [{ type: "project" as const, name: ONE }]
  expect(spokenKinds(DEFAULTS, mutes, OTHER, "darwin").size).toBe(0)
  expect(spokenKinds(DEFAULTS, mutes, OTHER, "linux").size).toBeGreaterThan(0)
  expect(spokenKinds(DEFAULTS, [{ type: "kind", name: "fix" }], OTHER, "darwin").has("fix")).toBe(false)
})

test("a subscription is notified about its project in every spelling", () => {
  const subscription = {
    ...{ id: "s", project: ONE, enabled: true, cooldown_ms: 0, created_at: 0 },
    patterns: [{ type: "file", pattern: "src/**", priority: "medium" }],
  } as unknown as Subscription
  const trigger = { project: OTHER, at: 1, file: "src/a.ts" } as never
  expect(matchingSubscriptions([subscription], trigger, "darwin")).toHaveLength(1)
  expect(matchingSubscriptions([subscription], trigger, "linux")).toHaveLength(0)
})

test("a project is opted in once, and opted out in every spelling", () => {
  const real = Object.getOwnPropertyDescriptor(process, "platform")!
  Object.defineProperty(process, "platform", { ...real, value: "darwin" })
  onTestFinished(() => void Object.defineProperty(process, "platform", real))
  const home = { dir: join(tempDir(), ".dex") }
  mkdirSync(home.dir)
  expect(optIn(home, ONE)).toBe(true)
  expect(optIn(home, OTHER)).toBe(false)
  expect(optedInProjects(home)).toEqual([ONE])
  expect(optOut(home, OTHER)).toBe(true)
  expect(optedInProjects(home)).toEqual([])
})
