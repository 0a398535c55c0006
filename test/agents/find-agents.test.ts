import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { loadConnectors } from "../../src/agents/connectors.ts"
import { agentVariant } from "../../src/agents/kit/agent.ts"
import type { Machine } from "../../src/agents/kit/connector.ts"
import { allRoots } from "../../src/agents/kit/places.ts"
import { agentOf, agents, isDexSource } from "../../src/agents/registry.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf } from "./contract.ts"

const ROOT = join(import.meta.dirname, "../..")

function machineAt(home: string, otherHomes: string[] = []): Machine {
  return { home, env: {}, platform: "linux", otherHomes }
}

async function sourcesAt(machine: Machine, stored: string[] = []): Promise<string[]> {
  return (await loadConnectors([], "", { machine, stored })).connectors.map(({ source }) => source)
}

function ofAgents(urls: string[]): string[] {
  return urls.flatMap((url) => /\/(?:src\/agents|more-agents\/src)\/(.+)$/.exec(url)?.[1] ?? []).sort()
}

test("does not import anything of an agent that is not installed", () => {
  const home = tempDir()
  mkdirSync(join(home, ".pi/agent/sessions"), { recursive: true })
  // A separate process: this one has imported all of them for other tests.
  const script = `
    import { registerHooks } from "node:module"
    const loaded = []
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context) } })
    const { loadConnectors } = await import("./src/agents/connectors.ts")
    await loadConnectors([], "", { machine: { home: ${JSON.stringify(home)}, env: {}, platform: "linux" }, stored: [] })
    console.log(JSON.stringify(loaded))`
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: ROOT, encoding: "utf8" })
  const loaded = ofAgents(JSON.parse(printed)).filter((file) => !file.startsWith("kit/"))
  expect(loaded).toEqual([...["connectors.ts", "outside.ts", "pi.ts"], "records.ts", "registry.ts"])
})

test("searching and listing load only four files about agents: their records and folders", () => {
  const script = `
    import { registerHooks } from "node:module"
    const loaded = []
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context) } })
    await import("./src/tools/search/run.ts")
    await import("./src/tools/list/run.ts")
    console.log(JSON.stringify(loaded))`
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: ROOT, encoding: "utf8" })
  expect(ofAgents(JSON.parse(printed))).toEqual(["kit/agent.ts", "kit/places.ts", "records.ts", "registry.ts"])
})

test("reads an agent if one of its roots exists, or if something of it is stored", async () => {
  const home = tempDir()
  expect(await sourcesAt(machineAt(home))).toEqual([])
  mkdirSync(join(home, ".codex"))
  expect(await sourcesAt(machineAt(home))).toEqual(["codex"])
  expect(await sourcesAt(machineAt(home), ["claude_code"])).toEqual(["claude_code", "codex"])
  expect((await loadConnectors()).connectors).toHaveLength(agents.filter(({ connector }) => connector).length)
})

test("searches other homes like the user's own, for every system, except for dex's own sources", async () => {
  const [home, other] = [tempDir(), tempDir()]
  mkdirSync(join(other, "AppData/Roaming/Cursor/User"), { recursive: true })
  mkdirSync(join(other, ".dex/notes"), { recursive: true })
  const machine = machineAt(home, [other])
  const { connectors } = await loadConnectors([], "", { machine, stored: ["dex_note"] })
  expect(connectors.map(({ source }) => source)).toEqual(["cursor", "dex_note"])
  expect(connectors[0]!.roots(machine)).toContain(join(other, "AppData/Roaming/Cursor/User"))
  expect(connectors[1]!.roots(machine)).toEqual([join(home, ".dex/notes")])
})

test("environment variables do not apply to other homes", () => {
  const machine = { ...machineAt("/h", ["/other"]), env: { CODEX_HOME: "/elsewhere" } }
  const codex = agents.find(({ source }) => source === "codex")!
  expect(allRoots(codex.roots!, machine)).toEqual(["/elsewhere", "/other/.codex"])
})

test("a variant is read by its parent's code, under its own name and in its own folder", async () => {
  const home = await homeOf("test/fixtures/pi/0.87-tree")
  const moved = tempDir()
  cpSync(join(home, ".pi"), join(moved, ".mine"), { recursive: true })
  const roots = ({ home }: Machine) => [join(home, ".mine/agent/sessions")]
  const reader = agentOf("pi")!.connector!
  const mine = agentVariant("pi", { source: "mine", name: "Mine", basis: "description", roots, reader })
  const connector = await mine.connector!()
  expect([mine.variantOf, connector.source]).toEqual(["pi", "mine"])
  const [own, parents] = [await conversationsOf(connector, moved), await conversationsOf(await reader(), home)]
  expect(own.size).toBeGreaterThan(0)
  expect([...own.keys()]).toEqual([...parents.keys()])
})

test("every agent that is read has roots and a basis, and a service that exports has only a basis", () => {
  const exporting = agents.filter(({ isExported }) => isExported)
  expect(exporting.map(({ source, roots, basis }) => [source, roots, basis !== undefined])).toEqual(
    ["chatgpt", "claude_ai", "gemini_app"].map((source) => [source, undefined, true]),
  )
  const read = agents.filter(({ connector, isExported }) => connector && !isExported)
  expect(read.filter(({ roots, basis }) => !roots || !basis).map(({ name }) => name)).toEqual([])
  expect(
    read.filter(({ source, basis }) => !isDexSource(source) && basis === "description").length,
  ).toBeLessThanOrEqual(13)
})

test.each(["linux", "darwin", "win32"] as const)("roots are absolute paths on %s, and stable", (platform) => {
  const machine = { home: "/home/dev", env: {}, platform }
  for (const { roots } of agents) {
    const at = roots?.(machine) ?? []
    expect(at.filter((path) => !path.startsWith("/home/dev/"))).toEqual([])
    expect(roots?.(machine) ?? []).toEqual(at)
  }
})
