import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { CLAUDE_CODE_HOOKS } from "../../src/agents/claude-code/wiring.ts"
import { CODEX_HOOKS } from "../../src/agents/codex/wiring.ts"
import { GEMINI_CLI_HOOKS } from "../../src/agents/gemini-cli/wiring.ts"
import { unwireAgents, wireAgents } from "../../src/integrations/wiring.ts"
import { DEX, dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"
import { JSON_FILES, TOML_FILES } from "./configs.ts"
import { onTerminal } from "./terminal.ts"

/** A home with these files; a name that ends in / is a folder. Agents of the machine that runs the tests are not found. */
function homeWith(files: Record<string, string>): string {
  const home = tempDir()
  for (const [name, text] of Object.entries(files)) {
    const path = join(home, name)
    mkdirSync(name.endsWith("/") ? path : dirname(path), { recursive: true })
    if (!name.endsWith("/")) writeFileSync(path, text)
  }
  return home
}

function linkToNothing(path: string): void {
  rmSync(path)
  symlinkSync("nowhere", path)
}

function folderInstead(path: string): void {
  rmSync(path)
  mkdirSync(path)
}

const ENV = { PATH: "/usr/bin:/bin" }
const run = (home: string, ...args: string[]) => warmDex(home, args, ENV)
const json = async (home: string, ...args: string[]) => JSON.parse((await run(home, ...args, "--json")).stdout)
const text = (home: string, path: string) => readFileSync(join(home, path), "utf8")

/** Everything except dex's own folder: bytes, modes and links. */
function snapshot(home: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(home, { recursive: true }).map(String).sort()) {
    if (entry.startsWith(".dex")) continue
    const path = join(home, entry)
    const stat = lstatSync(path)
    const kind = stat.isSymbolicLink() ? "link" : stat.isDirectory() ? "folder" : readFileSync(path, "latin1")
    found[entry] = `${(stat.mode & 0o777).toString(8)} ${kind}`
  }
  return found
}

/** OpenCode's folder after it has installed its plugin library. */
const OPENCODE_SET_UP = {
  ".config/opencode/node_modules/": "",
  ".config/opencode/package-lock.json": '{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}}}',
}

const contextOf = (home: string, script = DEX) => ({
  machine: { home, env: {}, platform: process.platform },
  dexHome: join(home, ".dex"),
  program: { node: process.execPath, script },
  now: Date.now(),
})

const ALL = {
  ".claude.json": '{\n  "numStartups": 4,\n  "projects": {}\n}',
  ".claude/settings.json": '{\n  // mine\n  "model": "opus",\n}\n',
  ".codex/config.toml": 'model = "x" # mine\n\n[projects."/a"]\ntrust_level = "trusted"\n',
  ".config/opencode/opencode.jsonc":
    '{\n\t// mine\n\t"mcp": {\n\t\t"other": { "type": "local", "command": ["x"] }\n\t}\n}\n',
  ".gemini/settings.json": '{"security":{"auth":{"selectedType":"oauth"}}}',
  ".cursor/mcp.json": "",
  ".config/Code/User/": "",
  ".copilot/hooks/mine.json": '{ "version": 1, "hooks": {} }',
  ".qwen/settings.json": '{\n  // mine\n  "hooks": { "Stop": [] }, "mcpServers": {}\n}\n',
  ".kimi-code/config.toml": '# mine\ntelemetry = false\n\n[[hooks]]   # also mine\nevent   = "Stop"\ncommand = "true"',
  ".grok/config.toml": '[cli]\ninstaller = "npm"',
  ".pi/agent/settings.json": "{}",
  ".cursor/hooks.json": '{\n  "version": 1,\n  "hooks": { "stop": [{ "command": "mine" }] } // mine\n}\n',
  ".openclaw/openclaw.json": '{ "agents": {}, }',
  ".local/share/goose/sessions/": "",
  ".config/kilo/kilo.jsonc": "{ /* mine */ }",
  ".factory/settings.json": '{\n\t"model": "x", // mine\n}',
  ".cline/data/settings/cline_mcp_settings.json": '{\n    "mcpServers": {\n    }\n}',
}

test("reports which agents are only read, and whose program is missing", async () => {
  const home = homeWith({
    ".claude/": "",
    ".omp/agent/sessions/--code-api--/2026-11-03T10-00-00-000Z_1.jsonl": `${JSON.stringify({ type: "session", version: 3, id: "1", timestamp: "2026-11-03T10:00:00.000Z", cwd: "/code/api" })}\n${JSON.stringify({ type: "message", id: "a", parentId: null, timestamp: "2026-11-03T10:00:01.000Z", message: { role: "user", content: [{ type: "text", text: "hello" }], timestamp: 1 } })}\n`,
  })
  expect((await run(home, "sync")).code).toBe(0)
  const installed = await run(home, "install", "--yes")
  expect(installed.stdout).toContain("settings folder found, `claude` is not on PATH")
  expect(installed.stderr).toContain("Read, but not connected: omp (dex has nothing to add to its settings).")
})

describe("dex install", () => {
  test("wires every agent the way it wants it, and dex uninstall leaves no trace", async () => {
    const home = homeWith(ALL)
    const before = snapshot(home)
    expect(await run(home, "install", "--yes")).toMatchObject({ code: 0 })

    const command = join(home, ".dex", "bin", "dex")
    const server = { command, args: ["serve"] }
    expect(JSON.parse(text(home, ".claude.json")).mcpServers.dex).toEqual({ type: "stdio", ...server, env: {} })
    expect(text(home, ".claude/settings.json")).toContain("// mine")
    expect(text(home, ".claude/settings.json").match(/bin\/dex-sync/g)).toHaveLength(2)
    expect(text(home, ".codex/config.toml")).toBe(
      `${ALL[".codex/config.toml"]}\n[mcp_servers.dex]\ncommand = "${command}"\nargs = ["serve"]\nrequired = true\n`,
    )
    expect(Object.keys(JSON.parse(text(home, ".codex/hooks.json")).hooks)).toEqual(
      CODEX_HOOKS.map(({ event }) => event),
    )
    expect(existsSync(join(home, ".config/opencode/plugin"))).toBe(false)
    expect(text(home, ".config/opencode/opencode.jsonc")).toContain(`\t\t"dex": {\n\t\t\t"type": "local"`)
    expect(JSON.parse(text(home, ".gemini/settings.json"))).toMatchObject({
      security: { auth: { selectedType: "oauth" } },
      mcpServers: { dex: { ...server, trust: true } },
      hooks: { SessionStart: [{}, {}], SessionEnd: [{}], BeforeAgent: [{}], AfterTool: [{}] },
    })
    expect(JSON.parse(text(home, ".cursor/mcp.json"))).toEqual({ mcpServers: { dex: server } })
    expect(JSON.parse(text(home, ".config/Code/User/mcp.json"))).toEqual({
      servers: { dex: { type: "stdio", ...server } },
    })
    expect(JSON.parse(text(home, ".copilot/mcp-config.json"))).toEqual({
      mcpServers: { dex: { type: "local", ...server, tools: ["*"] } },
    })
    expect(JSON.parse(text(home, ".copilot/hooks/dex.json")).hooks.PreToolUse).toEqual([
      {
        type: "command",
        matcher: "Read|Edit|Write",
        bash: `${join(home, ".dex", "bin", "dex-hook")} copilot PreToolUse`,
        timeoutSec: 1,
      },
    ])
    expect(text(home, ".kimi-code/config.toml")).toContain(
      `command = "true"\n\n[[hooks]]\nevent = "UserPromptSubmit"\ncommand = "${join(home, ".dex", "bin", "dex-hook")} kimi_code UserPromptSubmit"\ntimeout = 1\n`,
    )
    expect(text(home, ".cline/hooks/PreToolUse")).toMatch(/^#!\/bin\/sh\nexec \S+\/dex-hook cline PreToolUse\n$/)
    expect(JSON.parse(text(home, ".cursor/hooks.json").replace("// mine", "")).hooks).toMatchObject({
      stop: [{ command: "mine" }],
      sessionStart: [{ command: `${join(home, ".dex", "bin", "dex-hook")} cursor sessionStart`, timeout: 1 }],
      postToolUse: [{ matcher: "Read|Shell" }],
    })
    expect(text(home, ".openclaw/openclaw.json")).toContain('"servers"')
    expect(text(home, ".grok/hooks/dex.json")).toContain("dex-hook grok UserPromptSubmit later")
    for (const folder of [".claude", ".agents"])
      expect(text(home, `${folder}/skills/dex/SKILL.md`)).toMatch(/^---\nname: dex\ndescription: .+\n---\n/)
    for (const folder of [".codex", ".gemini", ".cursor", ".config/opencode"])
      expect(existsSync(join(home, folder, "skills"))).toBe(false)
    for (const file of [
      ".claude/agents/dex-retrieval.md",
      ".config/opencode/agents/dex-retrieval.md",
      ".gemini/agents/dex-retrieval.md",
      ".codex/agents/dex-retrieval.toml",
    ])
      expect(text(home, file)).toContain(`\`${command} show <ref> --lines --tokens-per-msg <n> --json\``)

    expect(await run(home, "uninstall", "--yes")).toMatchObject({ code: 0 })
    expect(snapshot(home)).toEqual(before)
    expect(readdirSync(join(home, ".dex"))).toEqual(["backups"])
  })

  test("changes nothing the second time, whatever was appended meanwhile", async () => {
    const home = homeWith(ALL)
    await run(home, "install", "--yes")
    const toml = join(home, ".codex", "config.toml")
    writeFileSync(toml, `${readFileSync(toml, "utf8")}\n[projects."/b"]\ntrust_level = "trusted"\n`)
    const before = snapshot(home)
    const again = await run(home, "install", "--yes")
    expect(again.code).toBe(0)
    expect(again.stderr).toContain("Nothing had to be changed")
    expect(snapshot(home)).toEqual(before)
  })

  test("shows the change to every file, and refuses if nobody can be asked", async () => {
    const home = homeWith({ ".codex/config.toml": 'model = "x"\n' })
    const before = snapshot(home)
    const refused = await run(home, "install")
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain("Add --yes")
    expect(refused.stdout).toContain(
      `--- ${home}/.codex/config.toml\n+++ ${home}/.codex/config.toml\n@@ -1,1 +1,6 @@\n model = "x"\n+\n+[mcp_servers.dex]\n`,
    )
    expect(snapshot(home)).toEqual(before)
    expect(existsSync(join(home, ".dex"))).toBe(false)
  })

  test("shows a change that patch can apply", async () => {
    const home = homeWith(ALL)
    const { files, asked } = await json(home, "install")
    expect(asked).toBe(true)
    const copy = tempDir()
    for (const { path, diff } of files as { path: string; diff: string }[]) {
      const beside = join(copy, path.slice(home.length))
      mkdirSync(dirname(beside), { recursive: true })
      if (existsSync(path)) cpSync(path, beside)
      const patched = spawnSync("patch", ["-s", beside], { input: diff, encoding: "utf8" })
      if (patched.error) return console.log("NOT RUN: there is no patch program")
      expect(patched.stdout + patched.stderr).toBe("")
    }
    await run(home, "install", "--yes")
    for (const { path } of files)
      expect(readFileSync(join(copy, path.slice(home.length)), "utf8")).toBe(readFileSync(path, "utf8"))
  })

  test("does not show a key next to the change", async () => {
    const key = `sk-ant-api03-${"aB3dE5fG7h".repeat(9)}AA`
    const home = homeWith({ ".gemini/settings.json": `{\n  "apiKey": "${key}"\n}\n` })
    const run1 = await run(home, "install")
    expect(run1.stdout).toContain('"apiKey"')
    expect(run1.stdout).not.toContain(key)
  })

  test("wires only the named agents, and reports a missing one", async () => {
    const home = homeWith(ALL)
    await run(home, "install", "codex", "gemini", "--yes")
    expect(text(home, ".claude.json")).toBe(ALL[".claude.json"])
    expect(text(home, ".codex/config.toml")).toContain("mcp_servers.dex")
    await run(home, "uninstall", "codex", "--yes")
    expect(text(home, ".codex/config.toml")).toBe(ALL[".codex/config.toml"])
    expect(existsSync(join(home, ".dex", "bin", "dex"))).toBe(true)

    const bare = homeWith({})
    expect((await run(bare, "install", "--yes")).stderr).toContain("No coding agent was found")
    expect((await run(bare, "install", "codex", "--yes")).stderr).toMatch(/Codex is not on this machine: .*\.codex/)
    expect((await run(bare, "install", "nobody", "--yes")).stderr).toMatch(
      /does not know the agent "nobody".*claude_code/,
    )
  })

  test("keeps a link, and changes its target", async () => {
    const home = homeWith({ "dotfiles/codex.toml": "a = 1\n", ".codex/": "" })
    symlinkSync("../dotfiles/codex.toml", join(home, ".codex", "config.toml"))
    chmodSync(join(home, "dotfiles/codex.toml"), 0o640)
    const before = snapshot(home)
    await run(home, "install", "--yes")
    expect(lstatSync(join(home, ".codex/config.toml")).isSymbolicLink()).toBe(true)
    expect(text(home, "dotfiles/codex.toml")).toContain("mcp_servers.dex")
    expect(statSync(join(home, "dotfiles/codex.toml")).mode & 0o777).toBe(0o640)
    await run(home, "uninstall", "--yes")
    expect(snapshot(home)).toEqual(before)
  })

  test.each([
    ["a read-only file", (path: string) => chmodSync(path, 0o444), /is read-only.*chmod u\+w/],
    ["a broken file", (path: string) => writeFileSync(path, "{ oops"), /is not valid JSON at line 1/],
    ["a file that is not text", (path: string) => writeFileSync(path, Buffer.from([0x7b, 0xff, 0x7d])), /is not UTF-8/],
    [
      "another server called dex",
      (path: string) => writeFileSync(path, '{"mcpServers":{"dex":{"command":"z"}}}'),
      /has another mcpServers.dex/,
    ],
    ["a link to nothing", linkToNothing, /is a broken link/],
    ["a folder", folderInstead, /is not a regular file/],
  ])("%s is reported and unchanged, and the other agents are wired", async (_, spoil, message) => {
    const home = homeWith({ ".cursor/mcp.json": "{}", ".codex/config.toml": "" })
    spoil(join(home, ".cursor", "mcp.json"))
    const before = snapshot(home)[".cursor/mcp.json"]
    const installed = await run(home, "install", "--yes")
    expect(installed.code).toBe(1)
    expect(installed.stdout.replace(/\s+/g, " ")).toMatch(message)
    expect(snapshot(home)[".cursor/mcp.json"]).toBe(before)
    expect(text(home, ".codex/config.toml")).toContain("mcp_servers.dex")
  })

  test("makes a private backup of every file that it changes", async () => {
    const home = homeWith({ ".claude.json": '{"a":1}' })
    const { files } = await json(home, "install", "--yes")
    const { backup } = files.find(({ path }: { path: string }) => path.endsWith(".claude.json"))
    expect(readFileSync(backup, "utf8")).toBe('{"a":1}')
    expect(statSync(backup).mode & 0o777).toBe(0o600)
  })

  test("writes new paths if dex moved, and can still remove everything", async () => {
    const home = homeWith(ALL)
    const before = snapshot(home)
    await run(home, "install", "--yes")
    const moved = join(tempDir(), "dist")
    cpSync(dirname(DEX), moved, { recursive: true })
    symlinkSync(join(dirname(DEX), "..", "node_modules"), join(dirname(moved), "node_modules"))
    const again = await dex(home, ["install", "--yes"], ENV, join(moved, "dex.js"))
    expect(again.code).toBe(0)
    expect(text(home, ".dex/bin/dex")).toContain(`script='${moved}/dex.js'`)
    await run(home, "uninstall", "--yes")
    expect(snapshot(home)).toEqual(before)
  })
})

describe("the hooks that call dex", () => {
  const hooks = (home: string, path: string) =>
    Object.entries(JSON.parse(text(home, path)).hooks as Record<string, { matcher?: string; hooks: object[] }[]>)
      .flatMap(([event, items]) => items.map((item) => ({ event, ...item })))
      .filter((item) => JSON.stringify(item).includes("dex-hook"))

  test("name their event, end within a second, and are removed by --no-hooks alone", async () => {
    const files = { ".claude/settings.json": "{}", ".codex/config.toml": "", ".gemini/settings.json": "{}" }
    const home = homeWith({ ...files, ...OPENCODE_SET_UP })
    await run(home, "install", "--yes", "--no-hooks")
    const without = snapshot(home)
    expect(Object.values(without).join()).not.toContain("dex-hook")
    expect(await run(home, "install", "--yes")).toMatchObject({ code: 0 })
    expect(snapshot(home), "a choice is kept").toEqual(without)

    const { stderr, stdout } = await run(home, "install", "--yes", "--hooks")
    expect(stderr).toContain("For the first week it only records")
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("Trust all and continue")
    const program = join(home, ".dex/bin/dex-hook")
    for (const [source, path, events, timeout] of [
      ["claude_code", ".claude/settings.json", CLAUDE_CODE_HOOKS, 1],
      ["codex", ".codex/hooks.json", CODEX_HOOKS, 1],
      ["gemini_cli", ".gemini/settings.json", GEMINI_CLI_HOOKS, 1000],
    ] as const) {
      expect(hooks(home, path)).toEqual(
        events.map(({ event, tools }) => ({
          event,
          ...(tools && { matcher: tools }),
          hooks: [{ type: "command", command: `${program} ${source} ${event}`, timeout }],
        })),
      )
    }
    expect(text(home, ".config/opencode/plugin/dex.js")).toContain(JSON.stringify(program))

    expect(await run(home, "install", "--yes", "--no-hooks")).toMatchObject({ code: 0 })
    expect(snapshot(home)).toEqual(without)
    expect(existsSync(program)).toBe(false)
    await run(home, "uninstall", "--yes")
  })

  test("OpenCode gets its plugin only if it would not wait for npm, with a note", async () => {
    const home = homeWith({ ".config/opencode/": "" })
    const { stdout } = await run(home, "install", "--yes")
    expect(stdout).toContain("offline it would hang")
    expect(existsSync(join(home, ".config/opencode/plugin"))).toBe(false)
    for (const [name, content] of Object.entries(OPENCODE_SET_UP)) {
      mkdirSync(join(home, dirname(`${name}x`)), { recursive: true })
      if (content !== "") writeFileSync(join(home, name), content)
    }
    const again = await run(home, "install", "--yes")
    expect(again.stdout).not.toContain("offline it would hang")
    expect(existsSync(join(home, ".config/opencode/plugin/dex.js"))).toBe(true)
  })

  test.skipIf(process.platform === "win32")(
    "the hook program prints nothing and blocks nothing if dex is gone or silenced",
    async () => {
      const home = homeWith({ ".claude/settings.json": "{}" })
      const context = contextOf(home, join(home, "gone.js"))
      await wireAgents(context, [], true)
      const program = join(home, ".dex/bin/dex-hook")
      const big = { input: "x".repeat(1 << 20), encoding: "utf8" as const }
      expect(spawnSync(program, ["claude_code", "PreToolUse"], big)).toMatchObject({
        status: 0,
        stdout: "",
        stderr: "",
      })
      writeFileSync(join(home, "gone.js"), "process.exit(2)")
      const env = { ...ENV, DEX_QUIET: "1" }
      expect(spawnSync(program, ["claude_code", "x"], { ...big, env })).toMatchObject({
        status: 0,
        stdout: "",
        stderr: "",
      })
    },
  )
})

describe("dex install on a terminal", () => {
  const DOWN = "\u001b[B"

  test("reports what it found, wires the chosen agents, sums up its changes, and checks them", async () => {
    const home = homeWith({ ".codex/": "", ".gemini/": "", ".claude/": "" })
    const done = await onTerminal(
      home,
      ["install"],
      [
        [/Connect which agents/, ` \r`],
        [/Let dex suggest/, "\r"],
        [/Make these changes to \d+ files/, "\r"],
      ],
      80,
    )
    if (done === undefined) return console.log("NOT RUN: no program here makes a terminal")
    expect(done.code).toBe(0)
    expect(done.screen).toMatch(/Found: Claude Code, Codex, Gemini CLI\r/)
    const shown = done.screen.slice(0, done.screen.indexOf("Make these changes"))
    expect(shown).toMatch(/Codex\r\n {2}create ~\/\.codex\/config\.toml/)
    expect(shown).toMatch(/Gemini CLI calls dex's tools without asking you/)
    expect(shown).not.toContain("+++ ")
    expect(shown).not.toContain("~/.claude.json")
    expect(existsSync(join(home, ".claude.json"))).toBe(false)
    expect(text(home, ".codex/config.toml")).toContain("mcp_servers.dex")
    expect(text(home, ".gemini/settings.json")).toContain("dex-hook")
    expect(done.screen).toMatch(/ok +Codex {2}connected[\s\S]*ok +Gemini CLI {2}connected/)
    expect(done.screen).toMatch(/Try it: in Codex, ask "what did I do/)
  })

  test("shows every line on request, and does nothing after a no", async () => {
    const home = homeWith({ ".codex/": "" })
    const before = snapshot(home)
    const shown = await onTerminal(
      home,
      ["install", "--hooks"],
      [
        [/Make these changes/, `${DOWN}\r`],
        [/\+\[mcp_servers\.dex\][\s\S]*Make these changes/, `${DOWN}${DOWN}\r`],
      ],
    )
    if (shown === undefined) return console.log("NOT RUN: no program here makes a terminal")
    expect(shown.code).toBe(2)
    expect(shown.screen).not.toContain("Connect which")
    expect(shown.screen).toContain("Nothing was changed.")
    expect(snapshot(home)).toEqual(before)
  })

  test("starts suggestions without a silent week if they are turned on at once", async () => {
    const home = homeWith({ ".codex/": "" })
    const done = await onTerminal(
      home,
      ["install"],
      [
        [/Let dex suggest/, `${DOWN}\r`],
        [/Make these changes/, "\r"],
      ],
    )
    if (done === undefined) return console.log("NOT RUN: no program here makes a terminal")
    expect(done.code).toBe(0)
    expect(JSON.parse(text(home, ".dex/config.json"))).toMatchObject({ "proactive.mode": "speak" })
    expect(done.screen).not.toContain("first week")
    expect(existsSync(join(home, ".codex/hooks.json"))).toBe(true)
  })
})

describe("which projects are private", () => {
  const conversation = (home: string, id: number, cwd: string) =>
    claudeSession(home, {
      id: `${id}${id}${id}${id}${id}${id}${id}${id}-5555-4555-8555-555555555555`,
      cwd,
      start: "2026-11-01T00:00:00Z",
      turns: [{ user: "the invoice format" }],
    })
  const synced = async () => {
    const home = homeWith({ ".codex/": "" })
    for (const id of [1, 2, 3]) conversation(home, id, "/code/api")
    for (const id of [4, 5]) conversation(home, id, "/clients/acme")
    conversation(home, 6, "/code/site")
    await run(home, "sync")
    return home
  }
  const found = async (home: string) => (await json(home, "search", "invoice", "--by", "message")).total

  test("is asked once, on a terminal, before agents can read them; the default is none", async () => {
    const home = await synced()
    const down = "\u001b[B"
    const first = await onTerminal(
      home,
      ["install"],
      [
        [/Connect which agents/, "\r"],
        [/Let dex suggest/, `${down}${down}\r`],
        [/Make these changes/, "\r"],
        [/Which projects are private/, `${down} \r`],
      ],
    )
    if (first === undefined) return console.log("NOT RUN: no program here makes a terminal")
    expect(first.code).toBe(0)
    expect(first.screen.indexOf("/code/api")).toBeLessThan(first.screen.indexOf("/clients/acme"))
    expect(text(home, ".codex/config.toml")).toContain("mcp_servers.dex")
    expect(await found(home)).toBe(4)
    expect(first.screen).not.toContain("dex private <folder>` hides")

    rmSync(join(home, ".agents/skills"), { recursive: true })
    const second = await onTerminal(home, ["install"], [[/Make this change/, "\r"]])
    expect(second).toMatchObject({ code: 0 })
    expect(second!.screen).not.toContain("Which projects")
    expect(second!.screen).not.toContain("Connect which")
    expect(second!.screen).not.toContain("Let dex suggest")
    expect(existsSync(join(home, ".codex/hooks.json"))).toBe(false)
    expect(text(home, ".agents/skills/dex/SKILL.md")).toContain("# Recall")
  })

  test("is asked if nothing else is left to do, and choosing none marks none", async () => {
    const home = await synced()
    expect((await run(home, "install", "--yes")).stderr).toContain(
      "`dex private <folder>` hides a project from agents in other projects",
    )
    const done = await onTerminal(home, ["install"], [[/Which projects are private/, "\r"]])
    if (done === undefined) return console.log("NOT RUN: no program here makes a terminal")
    expect(done.code).toBe(0)
    expect(await found(home)).toBe(6)
    expect((await run(home, "install", "--yes")).stderr).not.toContain("dex private")
  })

  test("cancelling the question changes nothing", async () => {
    const home = await synced()
    const before = snapshot(home)
    const cancelled = await onTerminal(
      home,
      ["install"],
      [
        [/Connect which agents/, "\r"],
        [/Let dex suggest/, "\r"],
        [/Make these changes/, "\r"],
        [/Which projects are private/, "\u0003"],
      ],
    )
    if (cancelled === undefined) return console.log("NOT RUN: no program here makes a terminal")
    expect(cancelled.code).toBe(2)
    expect(cancelled.screen).toContain("Nothing was changed")
    expect(snapshot(home)).toEqual(before)
    expect(await found(home)).toBe(6)
  })
})

test("Droid's hooks are added to the file that it reads", async () => {
  const hooksOf = (home: string, file: string) => Object.keys(JSON.parse(text(home, `.factory/${file}`)).hooks ?? {})
  const inSettings = homeWith({ ".factory/settings.json": "{}" })
  await run(inSettings, "install", "droid", "--yes")
  expect(hooksOf(inSettings, "settings.json")).toContain("PostToolUse")
  expect(existsSync(join(inSettings, ".factory/hooks.json"))).toBe(false)

  const own = '{ "Stop": [] }'
  const inHooks = homeWith({ ".factory/settings.json": "{}", ".factory/hooks.json": own })
  await run(inHooks, "install", "droid", "--yes")
  expect(text(inHooks, ".factory/settings.json")).toBe("{}")
  expect(Object.keys(JSON.parse(text(inHooks, ".factory/hooks.json")))).toContain("PostToolUse")
  await run(inHooks, "uninstall", "--yes")
  expect(text(inHooks, ".factory/hooks.json")).toBe(own)
})

describe("the skill that several agents read", () => {
  const skill = ".agents/skills/dex/SKILL.md"

  test("is written once, and removed with the last of them", async () => {
    const home = homeWith(ALL)
    const before = snapshot(home)
    await run(home, "install", "codex", "--yes")
    await run(home, "install", "gemini_cli", "cursor", "--yes")
    expect(await run(home, "uninstall", "codex", "--yes")).toMatchObject({ code: 0 })
    expect(existsSync(join(home, skill))).toBe(true)
    expect((await run(home, "uninstall", "cursor", "--yes")).stdout).not.toContain("Gemini")
    expect(existsSync(join(home, skill))).toBe(true)
    expect(await run(home, "uninstall", "gemini_cli", "--yes")).toMatchObject({ code: 0 })
    expect(snapshot(home)).toEqual(before)
  })

  test("replaces the copy that an earlier dex wrote for one agent, but not one that a person changed", async () => {
    const home = homeWith({ ".codex/config.toml": "", ".gemini/settings.json": "{}" })
    await run(home, "install", "--yes")
    const file = join(home, ".dex", "integrations.json")
    const record = JSON.parse(readFileSync(file, "utf8"))
    const own = { ...record.files[join(home, skill)], shared_with: undefined }
    for (const [agent, folder] of [
      ["codex", ".codex"],
      ["gemini_cli", ".gemini"],
    ] as const) {
      const path = join(home, folder, "skills", "dex", "SKILL.md")
      record.files[path] = { ...own, agent, made_folders: [join(home, folder, "skills"), dirname(path)] }
      mkdirSync(dirname(path), { recursive: true })
      cpSync(join(home, skill), path)
    }
    writeFileSync(file, JSON.stringify(record))
    writeFileSync(join(home, ".gemini/skills/dex/SKILL.md"), "my own words")
    expect((await run(home, "install", "--yes")).stdout).toContain("changed since dex wrote it")
    expect(existsSync(join(home, ".codex/skills"))).toBe(false)
    expect(text(home, ".gemini/skills/dex/SKILL.md")).toBe("my own words")
  })
})

describe("dex uninstall", () => {
  test("removes only its own additions from files that others changed meanwhile", async () => {
    const home = homeWith(ALL)
    await run(home, "install", "--yes")
    const claude = JSON.parse(text(home, ".claude.json"))
    writeFileSync(
      join(home, ".claude.json"),
      JSON.stringify(
        { ...claude, numStartups: 5, mcpServers: { ...claude.mcpServers, mine: { command: "m" } } },
        null,
        2,
      ),
    )
    writeFileSync(join(home, ".agents/skills/dex/SKILL.md"), "my own words")
    const { stdout, code } = await run(home, "uninstall", "--yes")
    expect(code).toBe(0)
    expect(text(home, ".claude.json")).toBe(
      JSON.stringify({ numStartups: 5, projects: {}, mcpServers: { mine: { command: "m" } } }, null, 2),
    )
    expect(text(home, ".agents/skills/dex/SKILL.md")).toBe("my own words")
    expect(stdout).toContain("changed since dex wrote it, so it was not removed")
  })

  test("keeps a changed entry and its launcher, and says how to remove it", async () => {
    const home = homeWith({
      ".cursor/mcp.json": '{\n  "mcpServers": {}\n}\n',
      ".codex/config.toml": "",
      ".gemini/": "",
    })
    await run(home, "install", "--yes")
    const cursor = join(home, ".cursor/mcp.json")
    const mine = text(home, ".cursor/mcp.json").replace('"args"', '"env": { "MY": "own" },\n      "args"')
    writeFileSync(cursor, mine)
    const toml = text(home, ".codex/config.toml").replace(/command = .*/, 'command = "/my/own/dex"')
    writeFileSync(join(home, ".codex/config.toml"), toml)

    const left = await run(home, "uninstall", "--yes")
    expect(left.code).toBe(0)
    expect(text(home, ".cursor/mcp.json")).toBe(mine)
    expect(text(home, ".codex/config.toml")).toBe(toml)
    expect(existsSync(join(home, ".gemini/settings.json"))).toBe(false)
    const printed = left.stdout.replace(/\s+/g, " ")
    expect(printed).toContain(
      "mcpServers.dex was changed since dex wrote it, so it was not removed. Delete it there yourself",
    )
    expect(printed).toContain("[mcp_servers.dex] was changed since dex wrote it")
    expect(left.stderr).toContain("its launcher stays")
    expect(existsSync(join(home, ".dex/bin/dex"))).toBe(true)

    writeFileSync(cursor, '{\n  "mcpServers": {}\n}\n')
    expect((await run(home, "uninstall", "--yes")).code).toBe(0)
    expect(existsSync(join(home, ".dex/bin"))).toBe(false)
    expect(existsSync(join(home, ".dex/integrations.json"))).toBe(false)
  })

  test("removes Codex's notes about a server's tools with the server", async () => {
    const home = homeWith({ ".codex/config.toml": "" })
    await run(home, "install", "--yes")
    const toml = join(home, ".codex/config.toml")
    writeFileSync(toml, `${readFileSync(toml, "utf8")}\n[mcp_servers.dex.tools.dex_get]\napproval_mode = "approve"\n`)
    expect((await run(home, "uninstall", "--yes")).code).toBe(0)
    expect(text(home, ".codex/config.toml").trim()).toBe("")
    expect(existsSync(join(home, ".dex/bin"))).toBe(false)
  })

  test("another install does not overwrite a changed entry", async () => {
    const home = homeWith({ ".cursor/": "" })
    await run(home, "install", "--yes")
    const mine = text(home, ".cursor/mcp.json").replace("serve", "mine")
    writeFileSync(join(home, ".cursor/mcp.json"), mine)
    const again = await run(home, "install", "--yes")
    expect(again.code).toBe(1)
    expect(again.stdout.replace(/\s+/g, " ")).toContain("has another mcpServers.dex")
    expect(text(home, ".cursor/mcp.json")).toBe(mine)
  })

  test("keeps the launcher for an agent whose file it may not change", async () => {
    const home = homeWith({ ".codex/config.toml": "a = 1\n" })
    await run(home, "install", "--yes")
    chmodSync(join(home, ".codex/config.toml"), 0o444)
    expect((await run(home, "uninstall", "--yes")).code).toBe(1)
    expect(existsSync(join(home, ".dex/bin/dex"))).toBe(true)
    chmodSync(join(home, ".codex/config.toml"), 0o644)
    expect((await run(home, "uninstall", "--yes")).code).toBe(0)
    expect(text(home, ".codex/config.toml")).toBe("a = 1\n")
    expect(existsSync(join(home, ".dex/bin"))).toBe(false)
  })

  test("reports that nothing is wired, and refuses to guess from a damaged record", async () => {
    const home = homeWith({ ".dex/integrations.json": "{" })
    const damaged = await run(home, "uninstall", "--yes")
    expect(damaged).toMatchObject({ code: 2 })
    expect(damaged.stderr).toMatch(/integrations\.json.*cannot be read/)
    rmSync(join(home, ".dex/integrations.json"))
    expect(await run(home, "uninstall", "--yes")).toMatchObject({ code: 1, stdout: "" })
  })

  test("restores every one of the differently written files, byte for byte", async () => {
    const names = Object.keys(JSON_FILES)
    const before: Record<string, string>[] = []
    const homes = names.map((name, i) => {
      const toml = Object.values(TOML_FILES)[i % Object.keys(TOML_FILES).length]!
      const home = homeWith({
        ".gemini/settings.json": JSON_FILES[name]!,
        ".codex/config.toml": toml,
        ".codex/hooks.json": JSON_FILES[name]!,
        ...OPENCODE_SET_UP,
      })
      before.push(snapshot(home))
      return home
    })
    for (const [i, home] of homes.entries()) {
      const context = contextOf(home)
      const installed = await wireAgents(context, [], true)
      expect(installed.files.map(({ problem }) => problem).filter(Boolean), names[i]).toEqual([])
      expect(
        (await wireAgents(context, [], true)).files.every(({ change }) => change === "none"),
        names[i],
      ).toBe(true)
      expect(snapshot(home)).not.toEqual(before[i])
      unwireAgents(context, [], true)
      expect(snapshot(home), names[i]).toEqual(before[i])
    }
  })
})

describe("the programs that agents start", () => {
  test("the launcher runs dex from an empty environment, and says what to do if dex is gone", async () => {
    const home = homeWith({ ".codex/": "" })
    await run(home, "install", "--yes")
    const launcher = join(home, ".dex/bin/dex")
    expect(execFileSync(launcher, ["--version"], { env: { HOME: home }, cwd: "/", encoding: "utf8" })).toMatch(
      /^dex \d/,
    )
    writeFileSync(launcher, readFileSync(launcher, "utf8").replace(/script='.*'/, "script='/gone/dex.js'"))
    const gone = spawnSync(launcher, ["serve"], { env: { HOME: home }, encoding: "utf8" })
    expect(gone).toMatchObject({ status: 2, stdout: "" })
    expect(gone.stderr).toContain("no longer at /gone/dex.js")
  })

  test("both work with a DEX_HOME that a shell would split, without that variable", async () => {
    const home = homeWith({ ".claude/": "" })
    const odd = join(home, "it's my $HOME `x` folder")
    await warmDex(home, ["install", "--yes"], { ...ENV, DEX_HOME: odd })
    const { command } = JSON.parse(text(home, ".claude.json")).mcpServers.dex
    execFileSync(command, ["sync"], { env: { HOME: home }, stdio: "ignore" })
    expect(existsSync(join(odd, "history.db"))).toBe(true)
    rmSync(join(odd, "history.db"))
    const hook = JSON.parse(text(home, ".claude/settings.json")).hooks.SessionEnd[0].hooks[0].command
    execFileSync("/bin/sh", ["-c", hook], { env: { HOME: home } })
    await expect.poll(() => existsSync(join(odd, "history.db"))).toBe(true)
    const synced = () => execFileSync(command, ["sync"], { env: { HOME: home }, encoding: "utf8", stdio: "pipe" })
    await expect.poll(synced).toContain("Nothing new")
    expect(existsSync(join(home, ".dex"))).toBe(false)
  })

  test("the sub-agent's guard allows only reading commands, without shell operators", async () => {
    const home = homeWith({ ".claude/": "" })
    const odd = join(home, "it's (my) $HOME")
    await run(home, "install", "--yes")
    await warmDex(home, ["install", "--yes"], { ...ENV, DEX_HOME: odd })
    for (const [folder, word] of [
      [join(home, ".dex"), `${home}/.dex/bin/dex`],
      [odd, `'${odd.replaceAll("'", "'\\''")}/bin/dex'`],
    ] as const) {
      const guard = (command: string, more = {}) =>
        spawnSync(join(folder, "bin/dex-reads"), {
          input: JSON.stringify({ tool_name: "Bash", tool_input: { command, ...more } }),
          env: { PATH: "/usr/bin:/bin" },
          encoding: "utf8",
        })
      for (const rest of ["list --json", "list", 'search "refresh token" --json', "read a:1f#2 5,9-12 --json"]) {
        const passed = guard(`${word} ${rest}`)
        expect(passed.status, rest).toBe(0)
        expect(JSON.parse(passed.stdout).hookSpecificOutput.permissionDecision).toBe("allow")
      }
      for (const command of [
        "rm -rf /",
        `${word} forget 1 --yes`,
        `${word}-sync`,
        `${word} listing`,
        ...["; id", " | tee x", " && id", " > x", "\nid", " $(id)", " `id`", ' "$(id)"', " & id", " \\\nid"].map(
          (rest) => `${word} list --json${rest}`,
        ),
        `id; ${word} list`,
        `X=1 ${word} list`,
      ])
        expect(guard(command).status, command).toBe(2)
      expect(guard("id", { description: `"command":"${word} list"` }).status).toBe(2)
      expect(guard("id", { more: { command: `${word} list` } }).status).toBe(2)
      expect(guard("id").stderr).toContain("may only run dex to read: list, search")
    }
    expect(text(home, ".claude/agents/dex-retrieval.md")).toContain("dex-reads")
  })

  test("the hook prints nothing and does not block, and the sync happens", async () => {
    const home = homeWith({ ".claude/": "" })
    await run(home, "install", "--yes")
    const hook = JSON.parse(text(home, ".claude/settings.json")).hooks.SessionStart[0].hooks[0].command
    const ran = spawnSync("/bin/sh", ["-c", hook], {
      env: { HOME: home, PATH: "/usr/bin:/bin" },
      encoding: "utf8",
      input: "{}",
    })
    expect(ran).toMatchObject({ status: 0, stdout: "", stderr: "" })
    await expect.poll(() => existsSync(join(home, ".dex/history.db"))).toBe(true)
    // It may still be writing into the folder that this test removes.
    await expect.poll(async () => (await run(home, "sync")).stdout).toContain("Nothing new")
  })

  test("--check starts the registered server, reports whether it answers, and leaves nothing running", async () => {
    const home = homeWith({ ".codex/": "", ".cursor/": "" })
    const none = await run(home, "install", "--check")
    expect(none).toMatchObject({ code: 1 })
    expect(none.stderr).toContain("No agent is connected yet")
    await run(home, "install", "codex", "--yes")

    const { servers, agents } = await json(home, "install", "--check")
    expect(servers).toMatchObject([{ command: [join(home, ".dex/bin/dex"), "serve"], agents: ["codex"], works: true }])
    expect(servers[0].tools).toBeGreaterThan(3)
    const state = (name: string) => agents.find(({ agent }: { agent: string }) => agent === name)
    expect(state("codex")).toMatchObject({ found: true, wired: true, problems: [], subagent: "there" })
    expect(state("cursor")).toMatchObject({ found: true, wired: false })
    expect(state("cursor").subagent).toBe(undefined)

    writeFileSync(join(home, ".codex/config.toml"), "")
    rmSync(join(home, ".codex/agents"), { recursive: true })
    writeFileSync(join(home, ".dex/bin/dex"), "#!/bin/sh\necho broken >&2\nexit 3\n")
    const broken = await run(home, "install", "--check")
    expect(broken.code).toBe(1)
    expect(broken.stdout).toContain("no longer contains [mcp_servers.dex]")
    expect(broken.stdout).toContain("dex-retrieval sub-agent is missing")
    expect(broken.stdout).toMatch(/ended with 3 before it answered\. It printed: broken/)
    expect((await run(home, "install", "--yes")).code).toBe(0)
    const mended = await run(home, "install", "--check")
    expect(mended.code).toBe(0)
    expect(mended.stderr.replace(/\s+/g, " ")).toContain(
      "Checked by starting `~/.dex/bin/dex serve` and ending it again; nothing stays running.",
    )
  })
})
