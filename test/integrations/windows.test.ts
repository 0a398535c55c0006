import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { CODEX_HOOKS } from "../../src/agents/codex/wiring.ts"
import { GEMINI_CLI_HOOKS } from "../../src/agents/gemini-cli/wiring.ts"
import { additionalContext } from "../../src/agents/hooks.ts"
import { hookStart, shellStart } from "../../src/agents/kit/wiring.ts"
import { loadWirings } from "../../src/integrations/agents.ts"
import { binOf, permanentNodePath } from "../../src/integrations/launcher.ts"
import { unwireAgents, wireAgents } from "../../src/integrations/wiring.ts"
import { tempDir } from "../support/temp.ts"

// The files for Windows. `npm run test:windows` starts them there.

const NODE = "C:\\Program Files\\nodejs\\node.exe"
const FILES = [
  ".claude/.keep",
  ".codex/.keep",
  ".gemini/.keep",
  ".cursor/.keep",
  ".copilot/.keep",
  "Roaming/Code/User/.keep",
]

function homeOnWindows() {
  const home = tempDir()
  for (const file of FILES) {
    mkdirSync(join(home, dirname(file)), { recursive: true })
    writeFileSync(join(home, file), "")
  }
  const machine = { home, env: { APPDATA: join(home, "Roaming") }, platform: "win32" as const }
  const program = { node: NODE, script: "C:\\Users\\me\\dex\\dist\\dex.js" }
  return { home, context: { machine, dexHome: join(home, ".dex"), program, now: Date.now() } }
}
const read = (home: string, path: string) => JSON.parse(readFileSync(join(home, path), "utf8"))

test("on Windows agents start Node with a script, never a batch file, and no file is left empty", async () => {
  const { home, context } = homeOnWindows()
  const { files } = await wireAgents(context, [], true, true)
  for (const { path } of files) expect([path, readFileSync(path, "utf8").trim()]).not.toEqual([path, ""])
  const server = { command: NODE, args: [join(home, ".dex/bin/dex.mjs"), "serve"] }
  expect(read(home, ".claude.json").mcpServers.dex).toEqual({ type: "stdio", ...server, env: {} })
  expect(read(home, ".gemini/settings.json").mcpServers.dex).toEqual({ ...server, trust: true })
  expect(read(home, ".cursor/mcp.json").mcpServers.dex).toEqual(server)
  expect(read(home, ".copilot/mcp-config.json").mcpServers.dex).toMatchObject(server)
  expect(read(home, "Roaming/Code/User/mcp.json").servers.dex).toMatchObject(server)
  expect(readFileSync(join(home, ".codex/config.toml"), "utf8")).toContain(
    `command = ${JSON.stringify(NODE)}\nargs = ${JSON.stringify(server.args).replaceAll(",", ", ")}\n`,
  )
})

test("on Windows every agent that has hooks gets them, and a sync at a session's start and end", async () => {
  const { home, context } = homeOnWindows()
  await wireAgents(context, [], true, true)
  const bin = (name: string) => join(home, ".dex", "bin", name)
  // Nothing is given back after a compaction on Windows, so nobody is asked before one.
  const eventsOf = (hooks: readonly { event: string }[]) =>
    hooks.map(({ event }) => event).filter((event) => !event.startsWith("PreComp"))
  const claude = read(home, ".claude/settings.json").hooks
  for (const event of ["SessionStart", "SessionEnd"])
    expect(claude[event][0]).toEqual({ hooks: [{ type: "command", command: NODE, args: [bin("dex-sync.mjs")] }] })
  expect(claude.PreToolUse).toEqual([
    {
      matcher: "Read|Edit|Write|MultiEdit",
      hooks: [{ type: "command", command: NODE, args: [bin("dex-hook.mjs"), "claude_code", "PreToolUse"], timeout: 1 }],
    },
  ])
  const codex = read(home, ".codex/hooks.json").hooks
  expect(Object.keys(codex)).toEqual(eventsOf(CODEX_HOOKS))
  expect(codex.SessionStart[0].hooks).toEqual([
    { type: "command", command: `cmd /d /c ${bin("dex-hook.cmd")} codex SessionStart`, timeout: 3 },
  ])
  const gemini = read(home, ".gemini/settings.json").hooks
  expect(Object.keys(gemini).sort()).toEqual(["SessionEnd", ...eventsOf(GEMINI_CLI_HOOKS)].sort())
  expect(gemini.SessionEnd[0].hooks[0].command).toBe(`& '${NODE}' '${bin("dex-sync.mjs")}'`)
  expect(gemini.AfterTool[0].hooks[0]).toEqual({
    type: "command",
    command: `& '${NODE}' '${bin("dex-hook.mjs")}' gemini_cli AfterTool`,
    timeout: 3000,
  })
})

test.each(["linux", "darwin", "win32"] as const)("on %s no agent wants a file without additions", async (platform) => {
  const machine = { home: "/home/me", env: {}, platform }
  const { hook, ...without } = binOf("/home/me/.dex", machine, NODE)
  for (const bin of [without, { ...without, hook }])
    for (const agent of await loadWirings())
      expect(agent.files(machine, bin).filter(({ additions }) => additions.length === 0)).toEqual([])
})

test("an older installation, with its batch file and empty settings, is rewritten and can be removed", async () => {
  const { home, context } = homeOnWindows()
  const settings = join(home, ".claude/settings.json")
  const record = {
    agent: "claude_code",
    existed: false,
    before_sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    after_sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    edits: [],
    additions: [],
    made_folders: [],
  }
  mkdirSync(join(home, ".dex"))
  writeFileSync(settings, "")
  writeFileSync(join(home, ".dex/integrations.json"), JSON.stringify({ version: 1, files: { [settings]: record } }))
  await wireAgents(context, ["claude"], true, true)
  expect(Object.keys(read(home, ".claude/settings.json").hooks)).toContain("SessionEnd")
  unwireAgents(context, [], true)
  expect(existsSync(settings)).toBe(false)
  expect(existsSync(join(home, ".dex/bin"))).toBe(false)
})

describe("a path with special characters", () => {
  const bin = { dex: "C:\\Users\\Ann O’Neil\\.dex\\bin\\dex.mjs", windows: { node: "C:\\Users\\it's\\node.exe" } }

  test("is one word to each shell", async () => {
    expect(hookStart(bin.dex, ["codex", "Stop"], bin, "any shell").command).toBe(
      'cmd /d /c "C:\\Users\\Ann O’Neil\\.dex\\bin\\dex.cmd" codex Stop',
    )
    expect(hookStart(bin.dex, ["a"], bin, "powershell").command).toBe(
      "& 'C:\\Users\\it''s\\node.exe' 'C:\\Users\\Ann O’’Neil\\.dex\\bin\\dex.mjs' a",
    )
    expect(shellStart(bin)).toBe("'C:/Users/Ann O’Neil/.dex/bin/dex.cmd'")
    expect(shellStart({ ...bin, dex: "C:\\Users\\me\\.dex\\bin\\dex.mjs" })).toBe("C:/Users/me/.dex/bin/dex.cmd")
  })
})

test("a hook's answer on Windows survives every code page", async () => {
  const answer = additionalContext("Stop", "fix · “ü” 🦊\n", "win32")
  expect(answer).toMatch(/^[\x20-\x7e]+$/)
  expect(JSON.parse(answer)).toEqual(JSON.parse(additionalContext("Stop", "fix · “ü” 🦊\n", "linux")))
})

test("a Node in a folder of a single shell is named by its real path", async () => {
  const home = realpathSync(tempDir())
  mkdirSync(join(home, "v22"))
  writeFileSync(join(home, "v22/node.exe"), "")
  mkdirSync(join(home, "fnm_multishells"))
  symlinkSync(join(home, "v22"), join(home, "fnm_multishells", "123_456"))
  expect(permanentNodePath(join(home, "fnm_multishells/123_456/node.exe"))).toBe(join(home, "v22/node.exe"))
  expect(permanentNodePath(NODE)).toBe(NODE)
})
