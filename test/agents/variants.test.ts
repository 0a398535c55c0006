import { appendFileSync, cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { Connector } from "../../src/agents/kit/connector.ts"
import { agents } from "../../src/agents/registry.ts"
import { contractOf, readAll } from "../../src/testing/contract.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { movedSources, variantFixtures } from "../support/variant-fixtures.ts"
import { conversationsOf, homeOf, testConnector } from "./contract.ts"

const connectorOf = (source: string): Promise<Connector> => agents.find((one) => one.source === source)!.connector!()

test("every variant has fixtures: its parent's, moved, or separate ones", () => {
  const variants = agents.filter(({ variantOf }) => variantOf !== undefined).map(({ source }) => source)
  expect(variants.sort()).toEqual([...movedSources, "iflow"].sort())
})

for (const source of movedSources)
  for (const { name, run } of contractOf(await connectorOf(source), (await variantFixtures(source))!)) test(name, run)

testConnector(await connectorOf("iflow"), "test/fixtures/iflow")

test.each([
  ["openclaude", {}, "linux", ["/h/.openclaude"]],
  ["openclaude", { OPENCLAUDE_CONFIG_DIR: "/o" }, "linux", ["/o"]],
  ["iflow", {}, "linux", ["/h/.iflow"]],
  ["qoder", {}, "linux", ["/h/.qoder", "/h/.qoderwork", "/h/.config/Qoder/SharedClientCache/cli"]],
  ["qoder", {}, "darwin", ["/h/.qoder", "/h/.qoderwork", "/h/Library/Application Support/Qoder/SharedClientCache/cli"]],
  ["qoder", { APPDATA: "/a" }, "win32", ["/h/.qoder", "/h/.qoderwork", "/a/Qoder/SharedClientCache/cli"]],
  ["traex", {}, "linux", ["/h/.trae/cli"]],
  ["open_interpreter", {}, "linux", ["/h/.openinterpreter"]],
  ["kilo", { XDG_DATA_HOME: "/d" }, "linux", ["/d/kilo"]],
  ["mimocode", {}, "win32", ["/h/.local/share/mimocode"]],
  ["tabnine_cli", {}, "linux", ["/h/.tabnine/agent"]],
  ["omp", {}, "linux", ["/h/.omp/agent/sessions"]],
  ["qclaw", {}, "linux", ["/h/.qclaw/agents"]],
] as const)("%s with %j on %s has the roots %j", (source, env, platform, roots) => {
  expect(agents.find((one) => one.source === source)!.roots!({ home: "/h", env, platform })).toEqual(roots)
})

test("a task of Kilo Code, which has no history entry, gets its folder from the text that Kilo Code adds to a prompt", async () => {
  const home = tempDir()
  const task = join(home, ".config/Code/User/globalStorage/kilocode.kilo-code/tasks/t1")
  mkdirSync(task, { recursive: true })
  const text = (folder: string) =>
    `<environment_details>\n# Current Workspace Directory (${folder}) Files\n</environment_details>`
  const turns = [
    { role: "user", content: [{ type: "text", text: "# Current Workspace Directory (/typed)" }] },
    {
      role: "user",
      content: [
        { type: "text", text: "<task>\nRaise the tax\n</task>" },
        { type: "text", text: text("/home/dev/shop") },
      ],
    },
  ]
  writeFileSync(join(task, "api_conversation_history.json"), JSON.stringify(turns))
  const [conversation] = [...(await conversationsOf(await connectorOf("kilo_editor"), home)).values()]
  expect(conversation!.cwds).toEqual(["/home/dev/shop"])
})

test("a variant's conversations do not belong to its parent", async () => {
  const folder = (await variantFixtures("openclaude"))!
  const home = join(folder, "2.1.42-compaction-rewind-progress", "home")
  expect(await readAll(await connectorOf("claude_code"), home)).toEqual([])
})

describe("iFlow", () => {
  test("states of one answer are not branches, and do not repeat calls", async () => {
    const all = await conversationsOf(await connectorOf("iflow"), await homeOf("test/fixtures/iflow/0.4-snapshots"))
    const messages = [...all.values()].flatMap((one) => one.messages)
    expect(messages.filter(({ abandoned }) => abandoned)).toEqual([])
    const types = messages.flatMap(({ parts }) => parts.map(({ type }) => type))
    expect(types.filter((type) => type === "tool_call")).toHaveLength(2)
    expect(types.filter((type) => type === "tool_result")).toHaveLength(2)
  })
})

describe("Qoder", () => {
  const line = (fields: object) =>
    `${JSON.stringify({ sessionId: "q", timestamp: "2026-11-10T09:00:00Z", ...fields })}\n`
  const SESSION =
    line({ type: "session_meta", uuid: "a", cwd: "/home/dev/proj" }) +
    line({ type: "user", uuid: "b", message: { role: "user", content: "count quolls" } })

  test("a session's first record names its folder, and its editor's sessions have no project folder", async () => {
    const home = tempDir()
    const folder = join(home, ".config/Qoder/SharedClientCache/cli/projects")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "q.jsonl"), SESSION)
    const [unit] = await readAll(await connectorOf("qoder"), home)
    expect(unit).toMatchObject({ unknown: {}, conversations: [{ id: "q", cwds: ["/home/dev/proj"] }] })
  })
})

describe("omp", () => {
  test("reads the title from the first line, also after a rewrite", async () => {
    const home = tempDir()
    const folder = join(home, ".omp/agent/sessions/--home-dev-proj--")
    mkdirSync(folder, { recursive: true })
    const path = join(folder, "2026-11-10T09-00-00_0b1.jsonl")
    const titled = async (title: string) => {
      writeFileSync(path, `${JSON.stringify({ type: "title", title })}\n`)
      appendFileSync(path, '{"type":"session","version":3,"id":"0b1","timestamp":"2026-11-10T09:00:00Z","cwd":"/p"}\n')
      appendFileSync(
        path,
        '{"type":"message","id":"a1","parentId":null,"timestamp":"2026-11-10T09:00:01Z","message":{"role":"user","content":"hi"}}\n',
      )
      return (await conversationsOf(await connectorOf("omp"), home)).get("0b1")?.title
    }
    expect(await titled("Numbats")).toEqual({ text: "Numbats", from: "agent" })
    expect(await titled("Bilbies")).toEqual({ text: "Bilbies", from: "agent" })
  })
})

describe("other projects' samples, in place", () => {
  const at = (source: string, sample: string | undefined, to: string) => async () => {
    const home = tempDir()
    cpSync(sample!, join(home, to), { recursive: true })
    return readAll(await connectorOf(source), home)
  }
  const kilo = sampleAt("kilo/kilo.db")
  test.skipIf(kilo === undefined)("Kilo's database is read", async () => {
    const parsed = await at("kilo", kilo, ".local/share/kilo/kilo.db")()
    const messages = parsed.flatMap(({ conversations }) => conversations.map((one) => one.messages.length))
    expect([messages, parsed[0]!.unknown]).toEqual([[2], {}])
  })
  const traex = sampleAt("codex/traex-rollout-subagent.jsonl")
  test.skipIf(traex === undefined)("TraeX's subagent names its parent", async () => {
    const file = "rollout-2026-08-01T18-07-03-019fbcca-9fd4-7d20-83dc-0762b2f839b3.jsonl"
    const parsed = await at("traex", traex, `.trae/cli/sessions/2026/08/01/${file}`)()
    expect(parsed.flatMap(({ conversations }) => conversations)).toMatchObject([
      { kind: "subagent", parent: { id: "019fbc4a-48b9-7472-a0da-6d92901383db" } },
    ])
  })
  const qoder = sampleAt("mixed/ctx-complete-content/qoder.jsonl")
  test.skipIf(qoder === undefined)("reads Qoder's one message", async () => {
    const parsed = await at("qoder", qoder, ".qoder/projects/p/complete-qoder.jsonl")()
    expect(parsed).toMatchObject([{ unknown: {}, conversations: [{ messages: [{ role: "user" }] }] }])
  })
  const tabnine = sampleAt("mixed/ctx-complete-content/tabnine.jsonl")
  test.skipIf(tabnine === undefined)("reads Tabnine's one message", async () => {
    const parsed = await at(
      "tabnine_cli",
      tabnine,
      ".tabnine/agent/tmp/p/chats/session-2026-07-21T12-00-complete.jsonl",
    )()
    expect(parsed).toMatchObject([{ unknown: {}, conversations: [{ messages: [{ role: "user" }] }] }])
  })
})
