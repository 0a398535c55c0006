import {
  claudeCodeSubagent,
  commandHook,
  geminiSubagent,
  RETRIEVAL_AGENT,
  SKILL_FILE,
  syncLine,
  WHEN_TO_USE_DEX,
} from "../agents/kit/wiring.ts"

const DESCRIPTION = "The memory that all of your coding agents share: past conversations, found and read back."

/**
 * The files of the Claude Code plugin and the Gemini CLI extension. JSON files are returned as data. A plugin cannot contain an
 * absolute path, and a bare `dex` needs an installation and a shell's PATH. So both start dex through npx: with a pinned version,
 * so that nothing newer runs unnoticed, and without the network once npx has that version.
 */
export function pluginFiles(version: string): Record<string, string | object> {
  const npx = ["--prefer-offline", "-y", `dexctx@${version}`]
  const dex = ["npx", ...npx].join(" ")
  const server = { command: "npx", args: [...npx, "serve"] }
  const sync = commandHook({ command: syncLine(dex) })
  const hooks = { hooks: { SessionStart: [sync], SessionEnd: [sync] } }
  const manifest = { name: "dex", version, description: DESCRIPTION }
  const { content: skillText } = SKILL_FILE
  return {
    ".claude-plugin/marketplace.json": {
      name: "dex",
      owner: { name: "dex" },
      metadata: { description: DESCRIPTION },
      plugins: [{ ...manifest, source: "./plugins/claude-code" }],
    },
    "plugins/claude-code/.claude-plugin/plugin.json": {
      ...manifest,
      author: { name: "dex" },
      license: "MIT",
      keywords: ["memory", "search", "history", "mcp"],
    },
    "plugins/claude-code/.mcp.json": { mcpServers: { dex: server } },
    "plugins/claude-code/hooks/hooks.json": hooks,
    "plugins/claude-code/skills/dex/SKILL.md": skillText,
    // Claude Code makes this name from the names of the plugin and of its server, both of which are `dex`.
    [`plugins/claude-code/agents/${RETRIEVAL_AGENT}.md`]: claudeCodeSubagent(dex, { server: "mcp__plugin_dex_dex" })
      .content,
    "plugins/gemini-cli/gemini-extension.json": {
      ...manifest,
      contextFileName: "GEMINI.md",
      mcpServers: { dex: server },
    },
    "plugins/gemini-cli/GEMINI.md": `# Recall with dex\n\n${WHEN_TO_USE_DEX}`,
    "plugins/gemini-cli/hooks/hooks.json": hooks,
    "plugins/gemini-cli/skills/dex/SKILL.md": skillText,
    [`plugins/gemini-cli/agents/${RETRIEVAL_AGENT}.md`]: geminiSubagent(dex).content,
  }
}
