import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, onTestFinished, test, vi } from "vitest"
import type { Connector } from "../../src/agents/kit/connector.ts"
import { contractOf } from "../../src/testing/contract.ts"
import { tempDir } from "../support/temp.ts"

const ROOT = join(import.meta.dirname, "../..")
const SECRET = `ghp_${"a1B2c3D4e5F6".repeat(3)}`
const MESSAGES = [
  {
    type: "message",
    id: "1",
    timestamp: "2026-11-15T12:00:00Z",
    cwd: "/home/dev/proj",
    role: "user",
    content: `use ${SECRET}`,
  },
  {
    type: "message",
    id: "2",
    timestamp: "2026-11-15T12:00:05Z",
    role: "assistant",
    content: [{ type: "text", text: "Done." }],
  },
  { type: "telemetry", id: "3" },
]

/** Copies the folders into which the script writes, and runs the script there. */
function begun(name: string, file: string, text: string) {
  const root = tempDir()
  const home = join(root, "home")
  for (const folder of ["src/agents", "src/core", "packages/more-agents"])
    cpSync(join(ROOT, folder), join(root, folder), { recursive: true })
  mkdirSync(join(home, ".some", "sessions"), { recursive: true })
  const session = join(home, ".some", "sessions", file)
  writeFileSync(session, text)
  const script = join(ROOT, "scripts", "new-agent.ts")
  const run = spawnSync(process.execPath, [script, name, session, root], {
    encoding: "utf8",
    env: { ...process.env, HOME: home },
  })
  return { root, ...run }
}

test.each([
  ["lines", "1.jsonl", MESSAGES.map((one) => `${JSON.stringify(one)}\n`).join("")],
  ["lines, by their other name", "1.ndjson", MESSAGES.map((one) => `${JSON.stringify(one)}\n`).join("")],
  ["one piece of JSON", "1.json", JSON.stringify({ id: "s", version: 1, messages: MESSAGES })],
])(
  "an agent created from a session in %s passes the contract, and its fixture has no secrets",
  async (_, file, text) => {
    const { root, stderr, status } = begun("some-agent", file, text)
    expect([stderr, status]).toEqual(["", 0])
    const fixtures = join(root, "test", "fixtures", "some_agent")
    const kept = readFileSync(join(fixtures, "0-first-session", "home", ".some", "sessions", file), "utf8")
    expect(kept).not.toContain(SECRET)
    const list = readFileSync(join(root, "packages/more-agents/src/records.ts"), "utf8")
    expect(list).toContain('import("./some-agent.ts")')
    expect(list).toMatch(/copilot, someAgent\]/)
    const made = (await import(pathToFileURL(join(root, "packages/more-agents/src/some-agent.ts")).href)) as {
      someAgentConnector: Connector
    }
    // In CI a missing golden file is an error; without CI the contract creates it.
    vi.stubEnv("CI", "")
    onTestFinished(() => void vi.unstubAllEnvs())
    for (const { run } of contractOf(made.someAgentConnector, fixtures)) await run()
    const golden = JSON.parse(readFileSync(join(fixtures, "0-first-session", "expected.json"), "utf8"))
    expect(golden[0].conversations[0].messages).toHaveLength(2)
    expect(golden[0].unknown.telemetry).toBe(1)
  },
)

test("an existing agent, a name that cannot begin a ref, and a database are refused with the reason", () => {
  expect(begun("pi", "1.jsonl", "{}\n")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("is there already"),
  })
  expect(begun("Some Agent", "1.jsonl", "{}\n")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("Which agent"),
  })
  const database = begun("some-agent", "1.db", "x")
  expect(database).toMatchObject({ status: 2, stderr: expect.stringContaining("src/crush.ts") })
  expect(existsSync(join(database.root, "packages/more-agents/src/some-agent.ts"))).toBe(false)
})
