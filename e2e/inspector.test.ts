import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { DEX, dex } from "../test/support/dex.ts"
import { smallHome } from "../test/support/home.ts"
import { tempDir } from "../test/support/temp.ts"

// The protocol's own inspector, headless, against the real `dex serve`: a client that we did not write.

const INSPECTOR = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url),
)
/** Each call starts a process of the inspector and one of dex, which takes long on a busy machine. */
const WITHIN_MS = 600_000
const CONNECT_MS = 120_000
const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"

/** An input for every tool. */
const INPUTS: Record<string, object> = {
  dex_search: { query: "mutex" },
  dex_list: { from: "2026-01-01" },
  dex_get: { ids: [`${AUTH}#7`] },
  dex_timeline: { id: `${AUTH}#7` },
  context_suggest: { error: "TypeError: x is not a function" },
  context_subscribe: { patterns: ["file:src/**"] },
  // Refused, because there is no suggestion with this id.
  suggestion_feedback: { id: "none", verdict: "used" },
  dex_stats: {},
  dex_guide: {},
  // Refused, because the home is not a repository.
  dex_why: { target: "HEAD" },
  dex_note: { words: ["Deploys need the VPN"] },
}

type Run = { code: number | null; stdout: string; stderr: string }

function inspect(home: string, era: string, ...args: string[]): Promise<Run> {
  const env = { PATH: process.env.PATH ?? "", HOME: home }
  const target = [process.execPath, DEX, "serve", "-e", `HOME=${home}`, "--cwd", home]
  const all = [
    INSPECTOR,
    "--cli",
    ...target,
    "--protocol-era",
    era,
    "--format",
    "json",
    "--connect-timeout",
    `${CONNECT_MS}`,
    ...args,
  ]
  return new Promise((resolve) => {
    const child = execFile(process.execPath, all, { env, cwd: home, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
      resolve({ code: error ? (typeof error.code === "number" ? error.code : null) : 0, stdout, stderr }),
    )
    child.stdin?.end()
  })
}

async function ask<T>(home: string, era: string, ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await inspect(home, era, ...args)
  expect(code, stderr).toBe(0)
  const answer = JSON.parse(stdout) as { result?: T }
  return answer.result ?? (answer as T)
}

async function synced(): Promise<string> {
  const home = tempDir()
  smallHome(home)
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  return home
}

describe.skipIf(!existsSync(INSPECTOR)).each(["legacy", "modern"])("the MCP inspector, %s era", (era) => {
  test(
    "lists every tool, accepts their schemas, and calls each one",
    async () => {
      const home = await synced()
      type Listed = { tools: { name: string }[] }
      const { tools } = await ask<Listed>(home, era, "--method", "tools/list", "--strict")
      expect(tools.map(({ name }) => name).sort()).toEqual(Object.keys(INPUTS).sort())
      type Called = { content: { text: string }[]; structuredContent: object; isError?: boolean }
      for (const { name } of tools) {
        const args = ["--tool-name", name, "--tool-args-json", JSON.stringify(INPUTS[name])]
        if (["suggestion_feedback", "dex_why"].includes(name)) {
          const refused = await inspect(home, era, "--method", "tools/call", ...args)
          expect(refused.stdout + refused.stderr).toContain("tool_is_error")
          continue
        }
        const called = await ask<Called>(home, era, "--method", "tools/call", ...args)
        expect(called.isError, name).toBeFalsy()
        expect(called.content[0]!.text.length).toBeGreaterThan(50)
        expect(Object.keys(called.structuredContent).length).toBeGreaterThan(0)
      }
      const wrong = await inspect(home, era, "--method", "tools/call", "--tool-name", "dex_get", "--tool-arg", "ids=[]")
      expect(wrong.code).not.toBe(0)
      expect(wrong.stdout + wrong.stderr).toMatch(/Which conversation/)
    },
    WITHIN_MS * 2,
  )

  test(
    "lists and reads resources, and lists and gets prompts",
    async () => {
      const home = await synced()
      const { resources } = await ask<{ resources: { uri: string }[] }>(home, era, "--method", "resources/list")
      expect(resources).toHaveLength(2)
      type Read = { contents: { text: string }[] }
      const read = await ask<Read>(home, era, "--method", "resources/read", "--uri", resources[1]!.uri)
      expect(read.contents[0]!.text).toMatch(/mutex around the refresh/)
      const templates = await ask<object>(home, era, "--method", "resources/templates/list")
      expect(JSON.stringify(templates)).toContain("dex://conversation/{ref}")
      const { prompts } = await ask<{ prompts: { name: string }[] }>(home, era, "--method", "prompts/list")
      expect(prompts.map(({ name }) => name)).toEqual(expect.arrayContaining(["recall", "hand_over", "today", "rules"]))
      const args = ["--prompt-name", "recall", "--prompt-args", "topic=mutex"]
      expect(JSON.stringify(await ask<object>(home, era, "--method", "prompts/get", ...args))).toContain("dex_search")
    },
    WITHIN_MS,
  )
})

if (!existsSync(INSPECTOR)) console.log("NOT RUN: the MCP inspector is not installed. `npm run e2e` installs it")
