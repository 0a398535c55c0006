import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { filesWithPackageFields, releaseOf } from "../../scripts/package-fields.mjs"
import { RETRIEVAL_AGENT, retrievalText } from "../../src/agents/kit/wiring.ts"
import { commands } from "../../src/cli/commands.ts"
import { loadWirings } from "../../src/integrations/agents.ts"
import { pluginFiles } from "../../src/integrations/plugins.ts"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"

const ROOT = join(import.meta.dirname, "../..")
const read = (file: string) => readFileSync(join(ROOT, file), "utf8")
const json = (file: string) => JSON.parse(read(file)) as Record<string, unknown>
const { version, mcpName } = releaseOf(ROOT)
const machine = { home: "/home/me", env: {}, platform: "linux" as const }
const BIN = {
  dex: "/home/me/.dex/bin/dex",
  sync: "/home/me/.dex/bin/dex-sync",
  guard: "/home/me/.dex/bin/dex-reads",
}

/** The text of a file that install writes for an agent. */
const wirings = await loadWirings()
function written(name: string, ending: string): string {
  const addition = wirings
    .find(({ agent }) => agent === name)!
    .files(machine, BIN)
    .find(({ path }) => path.endsWith(ending))!.additions[0]!
  if (addition.type !== "file") throw new Error("not a file of its own")
  return addition.content
}
const body = (text: string) => text.slice(text.indexOf("\n---\n") + 5)

test("plugins, marketplaces, the skill and the registry's entry are exactly what npm run plugins writes", () => {
  const files = pluginFiles(releaseOf(ROOT), offeredTools)
  for (const [path, content] of Object.entries(files))
    if (typeof content === "string") expect(read(path), path).toBe(content)
    else expect(json(path), path).toEqual(content)
  const there = ["plugins", "skills", ".agents", ".claude-plugin", ".cursor-plugin"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== "README.md")
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(ROOT.length + 1)
          .replaceAll("\\", "/"),
      ),
  )
  expect([...there, "server.json"].sort()).toEqual(Object.keys(files).sort())
})

test("the version and the repository's address are those of package.json everywhere", () => {
  const files = filesWithPackageFields(ROOT)
  for (const [path, text] of Object.entries(files)) expect(read(path), path).toBe(text)
  expect(Object.keys(files)).toContain("packages/embed-local/package.json")
})

test("every path in a plugin's manifest exists, and every server starts this version of dex", () => {
  for (const [folder, manifest] of [
    ["plugins/codex", ".codex-plugin/plugin.json"],
    ["plugins/cursor", ".cursor-plugin/plugin.json"],
  ] as const) {
    const { skills, mcpServers } = json(`${folder}/${manifest}`)
    for (const path of [skills, mcpServers])
      expect(existsSync(join(ROOT, folder, String(path))), String(path)).toBe(true)
    const { args } = (json(join(folder, String(mcpServers))) as { mcpServers: { dex: { args: string[] } } }).mcpServers
      .dex
    expect(args).toEqual(["--prefer-offline", "-y", `dexctx@${version}`, "serve"])
  }
})

test("the registry's entry has the name that the npm package claims, and fits the registry's limits", () => {
  const { name, description, packages } = json("server.json") as {
    name: string
    description: string
    packages: { identifier: string; version: string }[]
  }
  expect(name).toBe(mcpName)
  expect(json("package.json")).toMatchObject({ mcpName, name: packages[0]!.identifier })
  expect(packages[0]!.version).toBe(version)
  expect(description.length).toBeLessThanOrEqual(100)
})

test("they match what dex install writes, except for how dex is started", () => {
  const npx = `npx --prefer-offline -y dexctx@${version}`
  for (const [agent, folder] of [
    ["claude_code", "claude-code"],
    ["gemini_cli", "gemini-cli"],
  ] as const) {
    expect(read(`plugins/${folder}/skills/dex/SKILL.md`)).toBe(written(agent, "SKILL.md"))
    const subagent = written(agent, `${RETRIEVAL_AGENT}.md`)
    expect(body(read(`plugins/${folder}/agents/${RETRIEVAL_AGENT}.md`))).toBe(body(subagent.replaceAll(BIN.dex, npx)))
  }
})

test("the sub-agent's text and permissions name tools and commands that exist", () => {
  const offered = commands.flatMap(({ tool: { mcp } }) => (mcp ? [mcp.name] : []))
  const names = commands.map(({ tool }) => tool.name)
  const texts = [
    written("claude_code", `${RETRIEVAL_AGENT}.md`),
    written("opencode", `${RETRIEVAL_AGENT}.md`),
    written("gemini_cli", `${RETRIEVAL_AGENT}.md`),
    written("codex", `${RETRIEVAL_AGENT}.toml`),
  ]
  for (const text of texts) {
    const named = [...text.matchAll(/\bdex_[a-z]+\b/g)].map(([name]) => name)
    const permitted = [...text.matchAll(/(?:mcp__dex__|mcp_dex_)(dex_[a-z]+)/g)].map(([, name]) => name!)
    const typed = [...text.matchAll(/\.dex\/bin\/dex ([a-z]+)/g)].map(([, name]) => name!)
    const lines = [...text.matchAll(/\.dex\/bin\/dex show <ref> (--[^`]*)`/g)].map(([, options]) => options!)
    expect([...named, ...permitted].filter((name) => !offered.includes(name))).toEqual([])
    expect(typed.filter((name) => !names.includes(name))).toEqual([])
    for (const step of ["list", "search", "show"]) expect(typed).toContain(step)
    expect(lines).toEqual(["--lines --tokens-per-msg <n> --json", "--messages 5,9-12 --json"])
  }
  expect(retrievalText("dex")).toContain("clamp(20, 100, 5000 / total messages)")
})

test("OpenCode's sub-agent may only run commands that read", () => {
  const front = written("opencode", `${RETRIEVAL_AGENT}.md`).split("\n---\n")[0]!
  const rules = [...front.matchAll(/^ {4}"(.*)": (allow|deny)$/gm)].map(([, pattern, action]) => ({
    pattern: new RegExp(`^${pattern!.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`),
    action,
  }))
  const decide = (command: string) => rules.findLast(({ pattern }) => pattern.test(command))?.action
  for (const reads of ["show claude_code:1f3c --lines --tokens-per-msg 40 --json", "scan claude_code:1f3c --json"])
    expect(decide(`${BIN.dex} ${reads}`), reads).toBe("allow")
  for (const command of [
    "rm -rf /",
    `${BIN.dex} forget 1 --yes`,
    `${BIN.dex} private /x --off`,
    `${BIN.dex} read 1 2 > ~/.bashrc`,
    `${BIN.dex}-sync`,
  ])
    expect(decide(command), command).toBe("deny")
  expect(front).toContain('\n  "*": deny\n')
})
