import { execFile, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { expect, onTestFinished, test } from "vitest"
import { serveHttp } from "../test/mcp/http-client.ts"
import { tempDir } from "../test/support/temp.ts"

// The protocol's own conformance suite tests a fixture server. Its tools and resources are those that the suite expects, and its
// HTTP layer (token, Host and Origin, sessions, stateless mode) is dex's.

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const SUITE = file("node_modules/@modelcontextprotocol/conformance")
const EXPECTED = file("conformance/expected-failures.yml")
const EXCUSED = ["--expected-failures", EXPECTED]
/** The suite's own time limits are too short for a busy machine, so a failed test is retried. */
const LIMITS = { timeout: 300_000, retry: 2 }

/** The number of scenarios that a revision requires, and of further ones that the suite runs. */
const REVISIONS = [
  { revision: "2025-11-25", required: 30, optional: 3 },
  { revision: "2026-07-28", required: 37, optional: 13 },
]

test.skipIf(!existsSync(SUITE)).each(REVISIONS)(
  "a server on dex's HTTP passes every scenario that $revision requires",
  LIMITS,
  async ({ revision, required, optional }) => {
    const url = await startFixture()
    const { code, stdout } = await run(["server", "--url", url, "--requirements", revision, ...EXCUSED])
    const results = resultsIn(stdout)
    const names = requiredBy(revision)
    expect(names).toHaveLength(required)
    expect(names.filter((name) => results.get(name) !== true)).toEqual([])
    expect(code, stdout).toBe(0)
    const passed = [...results.values()].filter(Boolean).length - required
    console.log(
      `${revision}: ${required} of ${required} required scenarios pass, ${passed} of ${optional} optional ones`,
    )
    expect(results.size).toBe(required + optional)
    expect([...results].filter(([name, ok]) => !ok && !expectedToFail().includes(name))).toEqual([])
  },
)

/** Scenarios that need no tool, prompt or resource of the suite's own. */
const OF_ANY_SERVER = [
  {
    revision: "2025-11-25",
    names: [
      "server-initialize",
      "ping",
      "tools-list",
      "resources-list",
      "prompts-list",
      "server-sse-multiple-streams",
      "server-session-lifecycle",
    ],
  },
  {
    revision: "2026-07-28",
    names: [
      "tools-list",
      "resources-list",
      "prompts-list",
      "caching",
      "sep-2164-resource-not-found",
      "input-required-result-unsupported-methods",
    ],
  },
]

test.skipIf(!existsSync(SUITE)).each(OF_ANY_SERVER)(
  "dex itself passes the scenarios of $revision that apply to any server",
  LIMITS,
  async ({ revision, names }) => {
    const { port, token } = await serveHttp(tempDir())
    const url = `http://127.0.0.1:${port}/mcp`
    const check = async (name: string) => {
      const args = ["server", "--url", url, "--scenario", name, "--spec-version", revision]
      const { code, stdout } = await run(args, { NODE_OPTIONS: `--import ${sending(token)}` })
      expect(stdout, name).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/)
      expect(code, name).toBe(0)
    }
    await Promise.all(names.map(check))
  },
)

/** The suite has no option for a token, so this module adds it to every request. */
function sending(token: string): string {
  const code = `const fetched = globalThis.fetch
globalThis.fetch = (url, init = {}) => {
  const headers = new Headers(init.headers)
  headers.set("authorization", "Bearer ${token}")
  return fetched(url, { ...init, headers })
}`
  return `data:text/javascript;base64,${Buffer.from(code).toString("base64")}`
}

test("the expected failures include nothing that dex relies on or that a revision requires", () => {
  const names = expectedToFail()
  expect(names.length).toBeGreaterThan(0)
  expect(names.filter((name) => /^tools|stateless|caching|dns-rebinding/.test(name))).toEqual([])
  const required = existsSync(SUITE) ? REVISIONS.flatMap(({ revision }) => requiredBy(revision)) : []
  expect(names.filter((name) => required.includes(name))).toEqual([])
})

/** The names in the file of expected failures, which is a plain YAML list. */
function expectedToFail(): string[] {
  return [...readFileSync(EXPECTED, "utf8").matchAll(/^ {2}- (\S+)$/gm)].map(([, name]) => name!)
}

/** The required scenarios, read from the suite's own list so that none can be left out. */
function requiredBy(revision: string): string[] {
  const list = readFileSync(`${SUITE}/requirements/${revision}.yaml`, "utf8")
  const server = /^server:\n((?: {2}- \S+\n)+)/m.exec(list)?.[1] ?? ""
  return [...server.matchAll(/- (\S+)/g)].map(([, name]) => name!)
}

function resultsIn(summary: string): Map<string, boolean> {
  const lines = summary.matchAll(/^([✓✗]) (\S+): \d+ passed, \d+ failed/gm)
  return new Map([...lines].map(([, sign, name]) => [name!, sign === "✓"]))
}

function run(args: string[], env: Record<string, string> = {}): Promise<{ code: number | null; stdout: string }> {
  const options = { cwd: tempDir(), env: { PATH: process.env.PATH ?? "", NO_COLOR: "1", ...env }, maxBuffer: 64 << 20 }
  return new Promise((resolve) =>
    execFile(process.execPath, [`${SUITE}/dist/index.js`, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? (typeof error.code === "number" ? error.code : null) : 0, stdout: stdout + stderr }),
    ),
  )
}

function startFixture(): Promise<string> {
  const child = spawn(process.execPath, [file("../test/mcp/conformance-server.ts")], { stdio: "pipe" })
  onTestFinished(() => void child.kill("SIGKILL"))
  let said = ""
  child.stderr.on("data", (chunk) => {
    said += chunk
  })
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve)
    child.once("exit", (code) => reject(new Error(`The fixture ended with ${code} before it listened. ${said}`)))
  })
}
