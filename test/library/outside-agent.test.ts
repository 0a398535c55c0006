import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, test } from "vitest"
import type { OutsideAgent } from "../../src/agents/kit/connector.ts"
import { contractOf } from "../../src/testing/contract.ts"
import { dex } from "../support/dex.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const ROOT = join(import.meta.dirname, "../..")
const PACKAGE = join(import.meta.dirname, "outside-agent")
const FIXTURES = join(PACKAGE, "fixtures")

/** A home with the package installed next to dex's data, as npm would, and one of its sessions. */
function homeWith(settings: object, home = tempDir()): string {
  const modules = join(home, ".dex", "node_modules")
  mkdirSync(modules, { recursive: true, mode: 0o700 })
  cpSync(PACKAGE, join(modules, "dex-agent-notebook"), { recursive: true })
  symlinkSync(ROOT, join(modules, "dexctx"), "junction")
  cpSync(join(FIXTURES, "1.0.0-two-messages", "home"), home, { recursive: true })
  writeFileSync(join(home, ".dex", "config.json"), JSON.stringify(settings), { mode: 0o600 })
  return home
}

const installed = join(homeWith({}, sharedTempDir()), ".dex/node_modules/dex-agent-notebook/agent.mjs")
const { agent } = (await import(pathToFileURL(installed).href)) as { agent: OutsideAgent }
for (const { name, run } of contractOf(await agent.connector(), FIXTURES)) test(name, run)

test("an agent that the user's settings name is read, found, resumed and checked like any other", async () => {
  const home = homeWith({ agents: "dex-agent-notebook" })
  expect(await warmDex(home, ["sync"])).toMatchObject({ code: 0 })
  const found = JSON.parse((await warmDex(home, ["search", "axolotl keys", "--json"])).stdout)
  expect(found.results).toMatchObject([
    { id: "notebook:monday", title: expect.stringContaining("axolotl cache"), source: "notebook" },
  ])
  for (const filter of [["--source", "notebook"], ["source:notebook"]])
    expect((await warmDex(home, ["search", "axolotl", ...filter, "--json"])).stdout).toContain("notebook:monday")
  expect(JSON.parse((await warmDex(home, ["resume", "notebook:monday", "--json"])).stdout).command).toEqual([
    "notebook",
    "--continue",
    "monday",
  ])
  expect((await warmDex(home, ["handover", "notebook:monday"])).stdout).toContain("Notebook")
  expect((await warmDex(home, ["sources"])).stdout).toContain("notebook")
  const { stdout } = await warmDex(home, ["doctor"])
  expect(stdout).toMatch(/Notebook \(notebook\) from\s+\S+agent\.mjs/)
  expect(stdout).toContain("readable by you only")
  writeFileSync(join(home, ".dex", "config.json"), "{}", { mode: 0o600 })
  expect((await warmDex(home, ["show", "notebook:monday"])).stdout).toContain("axolotl:v2")
  const refused = await warmDex(home, ["list", "--source", "notebook"])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('No agent is called "notebook". The agents are: claude_code'),
  ])
})

test("an agent that cannot be loaded, or takes all memory, is named and does not affect the others", async () => {
  const names = ["no-such-package", "dex-agent-notebook"].join(",")
  const home = homeWith({ agents: names })
  const module = (file: string) => join(home, ".dex", "node_modules", "dex-agent-notebook", file)
  const settings = { agents: [names, module("broken.mjs"), module("greedy.mjs"), module("lost.mjs")].join(",") }
  writeFileSync(join(home, ".dex", "config.json"), JSON.stringify(settings), { mode: 0o600 })
  const report = JSON.parse((await dex(home, ["sync", "--json"])).stdout.trim().split("\n").at(-1)!)
  const reasons = Object.fromEntries(
    report.unreadable.map(({ path, reason }: { path: string; reason: string }) => [path, reason]),
  )
  expect(reasons["no-such-package"]).toMatch(/Cannot find module/)
  expect(reasons[module("broken.mjs")]).toBe("dex itself has an agent with the source codex; choose a different one")
  expect(Object.values(reasons)).toContain("no folder is set")
  expect(reasons[join(home, ".notebook", "sessions", "monday.jsonl")]).toMatch(/too large to read/)
  expect((await warmDex(home, ["search", "axolotl", "--json"])).stdout).toContain("notebook:monday")
  expect(await warmDex(home, ["sources"])).toMatchObject({ code: 0 })
  const { stdout } = await warmDex(home, ["doctor"])
  expect(stdout).toContain("no-such-package cannot be loaded")
})

test("a project cannot bring an agent, and neither can a variable of its shell", async () => {
  const home = homeWith({})
  const project = join(home, "project")
  mkdirSync(join(project, ".git"), { recursive: true })
  writeFileSync(join(project, ".dex.json"), JSON.stringify({ agents: "dex-agent-notebook" }))
  const env = { DEX_AGENTS: "dex-agent-notebook" }
  await warmDex(home, ["sync"], env, project)
  const listed = await warmDex(home, ["list", "--all", "--json"], env, project)
  expect(listed.stdout).not.toContain("notebook")
  const config = await warmDex(home, ["config", "list"], env, project)
  expect(config.stdout + config.stderr).toMatch(/DEX_AGENTS: agents decides what dex runs/)
})
