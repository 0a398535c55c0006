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
const KEYWORDS = ["memory", "search", "history", "mcp"]
const LICENSE = "MIT"
const AUTHOR = { name: "dex" }
const MARKETPLACE = { name: "dex", owner: AUTHOR, metadata: { description: DESCRIPTION } }
const SERVER_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

/** A release, as package.json describes it. `address` is the repository's, for a browser. */
export type Release = { version: string; address: string; mcpName: string; node: string }
/** A tool of the MCP server. */
type PluginTool = { summary: string; mcp: { name: string } }

/**
 * The files with which agents, their marketplaces and the MCP registry find and start dex. JSON files are returned as data. A
 * plugin cannot contain an absolute path, and a bare `dex` needs an installation and a shell's PATH. So plugins start dex through
 * npx: with a pinned version, so that nothing newer runs unnoticed, and without the network once npx has that version.
 */
export function pluginFiles(release: Release, tools: readonly PluginTool[]): Record<string, string | object> {
  return {
    ...claudeCodePlugin(release),
    ...geminiExtension(release),
    ...codexPlugin(release),
    ...cursorPlugin(release),
    "skills/dex/SKILL.md": SKILL_FILE.content,
    "server.json": registryEntry(release),
    "plugins/mcpb/manifest.json": bundleManifest(release, tools),
  }
}

/** The fields that the manifests of all plugins have. */
const manifestOf = ({ version }: Release) => ({ name: "dex", version, description: DESCRIPTION })
const linksOf = ({ address }: Release) => ({ homepage: `${address}#readme`, repository: address, license: LICENSE })

function npxOf({ version }: Release): string[] {
  return ["--prefer-offline", "-y", `dexctx@${version}`]
}

function serversOf(release: Release) {
  return { mcpServers: { dex: { command: "npx", args: [...npxOf(release), "serve"] } } }
}

function shellLineOf(release: Release): string {
  return ["npx", ...npxOf(release)].join(" ")
}

function hooksOf(release: Release) {
  const sync = commandHook({ command: syncLine(shellLineOf(release)) })
  return { hooks: { SessionStart: [sync], SessionEnd: [sync] } }
}

function claudeCodePlugin(release: Release) {
  const folder = "plugins/claude-code"
  const manifest = manifestOf(release)
  return {
    ".claude-plugin/marketplace.json": { ...MARKETPLACE, plugins: [{ ...manifest, source: `./${folder}` }] },
    [`${folder}/.claude-plugin/plugin.json`]: {
      ...manifest,
      author: AUTHOR,
      ...linksOf(release),
      keywords: KEYWORDS,
    },
    [`${folder}/.mcp.json`]: serversOf(release),
    [`${folder}/hooks/hooks.json`]: hooksOf(release),
    [`${folder}/skills/dex/SKILL.md`]: SKILL_FILE.content,
    // Claude Code makes this name from the names of the plugin and of its server, both of which are `dex`.
    [`${folder}/agents/${RETRIEVAL_AGENT}.md`]: claudeCodeSubagent(shellLineOf(release), {
      server: "mcp__plugin_dex_dex",
    }).content,
  }
}

function geminiExtension(release: Release) {
  const folder = "plugins/gemini-cli"
  return {
    [`${folder}/gemini-extension.json`]: {
      ...manifestOf(release),
      contextFileName: "GEMINI.md",
      ...serversOf(release),
    },
    [`${folder}/GEMINI.md`]: `# Recall with dex\n\n${WHEN_TO_USE_DEX}`,
    [`${folder}/hooks/hooks.json`]: hooksOf(release),
    [`${folder}/skills/dex/SKILL.md`]: SKILL_FILE.content,
    [`${folder}/agents/${RETRIEVAL_AGENT}.md`]: geminiSubagent(shellLineOf(release)).content,
  }
}

/** Codex skips a plugin's hooks until the user trusts them, and a plugin cannot contain a sub-agent. */
function codexPlugin(release: Release) {
  const folder = "plugins/codex"
  const category = "Productivity"
  return {
    ".agents/plugins/marketplace.json": {
      name: "dex",
      interface: { displayName: "dex" },
      plugins: [
        {
          name: "dex",
          source: { source: "local", path: `./${folder}` },
          policy: { installation: "AVAILABLE", authentication: "ON_INSTALL" },
          category,
        },
      ],
    },
    [`${folder}/.codex-plugin/plugin.json`]: {
      ...manifestOf(release),
      author: AUTHOR,
      ...linksOf(release),
      keywords: KEYWORDS,
      skills: "./skills/",
      mcpServers: "./.mcp.json",
      interface: {
        displayName: "dex",
        shortDescription: "Recall past conversations of all agents",
        longDescription: DESCRIPTION,
        developerName: "dex",
        category,
        capabilities: ["Read"],
        defaultPrompt: ["What did we decide about this file, and why?"],
        websiteURL: release.address,
      },
    },
    [`${folder}/.mcp.json`]: serversOf(release),
    [`${folder}/skills/dex/SKILL.md`]: SKILL_FILE.content,
  }
}

/** Neither hooks nor the sub-agent are in it, because they were never tried with Cursor. */
function cursorPlugin(release: Release) {
  const folder = "plugins/cursor"
  return {
    ".cursor-plugin/marketplace.json": {
      ...MARKETPLACE,
      plugins: [{ name: "dex", source: folder, description: DESCRIPTION }],
    },
    [`${folder}/.cursor-plugin/plugin.json`]: {
      ...manifestOf(release),
      displayName: "dex",
      author: AUTHOR,
      ...linksOf(release),
      keywords: KEYWORDS,
      category: "developer-tools",
      skills: "./skills/",
      mcpServers: "./mcp.json",
    },
    [`${folder}/mcp.json`]: serversOf(release),
    [`${folder}/skills/dex/SKILL.md`]: SKILL_FILE.content,
  }
}

/** The entry in the MCP registry. It checks that the npm package has the same name in `mcpName`. */
function registryEntry({ version, address, mcpName }: Release) {
  return {
    $schema: SERVER_SCHEMA,
    name: mcpName,
    title: "dex",
    description: DESCRIPTION,
    version,
    websiteUrl: `${address}#readme`,
    repository: { url: address, source: "github" },
    packages: [
      {
        registryType: "npm",
        identifier: "dexctx",
        version,
        runtimeHint: "npx",
        transport: { type: "stdio" },
        packageArguments: [{ type: "positional", value: "serve" }],
      },
    ],
  }
}

/** The manifest of the bundle (.mcpb), which contains the whole program. `npm run release:files` makes the bundle. */
function bundleManifest(release: Release, tools: readonly PluginTool[]) {
  const { address, node } = release
  const program = "dist/dex.js"
  return {
    manifest_version: "0.3",
    ...manifestOf(release),
    display_name: "dex",
    author: AUTHOR,
    repository: { type: "git", url: `${address}.git` },
    homepage: `${address}#readme`,
    support: `${address}/issues`,
    license: LICENSE,
    keywords: KEYWORDS,
    server: {
      type: "node",
      entry_point: program,
      // The program that installs the bundle replaces `__dirname`.
      mcp_config: { command: "node", args: [`\${__dirname}/${program}`, "serve"] },
    },
    tools: tools.map(({ summary, mcp }) => ({ name: mcp.name, description: summary })),
    prompts_generated: true,
    compatibility: { platforms: ["darwin", "win32", "linux"], runtimes: { node } },
  }
}
