import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tempDir } from "../test/support/temp.ts"
import { AGENTS } from "./agents.ts"
import { run } from "./children.ts"

// Each agent's own client installs the plugin that this repository offers it, lists it, and removes it. No model is asked.

const ROOT = join(import.meta.dirname, "..")
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string }

/** An empty home, and the agent's program in it. */
function machine(name: string) {
  const { command, env } = AGENTS.find((agent) => agent.name === name)!
  const home = join(tempDir(), "home")
  mkdirSync(join(home, ".codex"), { recursive: true })
  const agent = async (...args: string[]) => {
    const { code, stdout, stderr } = await run([...command, ...args], {
      cwd: home,
      env: { PATH: process.env.PATH ?? "", HOME: home, TMPDIR: home, NO_COLOR: "1", ...env("http://127.0.0.1:9") },
    })
    expect(code, `${args.join(" ")}: ${stdout}${stderr}`).toBe(0)
    return stdout + stderr
  }
  return { home, agent }
}

test("Claude Code accepts the plugin and its marketplace, installs and removes it", async () => {
  const { home, agent } = machine("claude_code")
  for (const folder of [".", "plugins/claude-code"])
    expect(await agent("plugin", "validate", "--strict", join(ROOT, folder))).toContain("Validation passed")
  await agent("plugin", "marketplace", "add", ROOT)
  await agent("plugin", "install", "dex@dex")
  expect(await agent("plugin", "list")).toMatch(new RegExp(`dex@dex[\\s\\S]*${version.replaceAll(".", "\\.")}`))
  await agent("plugin", "uninstall", "dex@dex")
  await agent("plugin", "marketplace", "remove", "dex")
  expect(readFileSync(join(home, ".claude/settings.json"), "utf8")).not.toContain("dex@dex")
})

test("Codex installs the plugin with its server and its skill, and removes it", async () => {
  const { home, agent } = machine("codex")
  await agent("plugin", "marketplace", "add", ROOT)
  await agent("plugin", "add", "dex@dex")
  const folder = join(home, ".codex/plugins/cache/dex/dex", version)
  expect(readdirSync(folder).sort()).toEqual([".codex-plugin", ".mcp.json", "skills"])
  expect(await agent("mcp", "list")).toMatch(new RegExp(`dex +npx +--prefer-offline -y dexctx@${version} serve`))
  await agent("plugin", "remove", "dex@dex")
  await agent("plugin", "marketplace", "remove", "dex")
  expect(existsSync(folder)).toBe(false)
  expect(readFileSync(join(home, ".codex/config.toml"), "utf8")).not.toContain("dex")
})

test("Gemini CLI accepts the extension, installs and removes it", async () => {
  const { home, agent } = machine("gemini_cli")
  const extension = join(ROOT, "plugins/gemini-cli")
  expect(await agent("extensions", "validate", extension)).toContain("successfully validated")
  await agent("extensions", "install", extension, "--consent")
  expect(await agent("extensions", "list")).toContain(`dex (${version})`)
  await agent("extensions", "uninstall", "dex")
  expect(existsSync(join(home, ".gemini/extensions/dex"))).toBe(false)
})
