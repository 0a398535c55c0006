import { existsSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import { readText } from "../../core/read-file.ts"
import type { Machine } from "../kit/connector.ts"
import {
  HOOK_TIMEOUT_MS,
  opencodeSubagent,
  RETRIEVAL_AGENT,
  serverStart,
  shellStart,
  skillFile,
  type Wiring,
} from "../kit/wiring.ts"

export const opencodeWiring: Wiring = {
  signs: (machine) => ({
    paths: [
      opencodeFolder(machine),
      join(xdgFolder(machine.env.XDG_DATA_HOME, machine.home, ".local", "share"), "opencode"),
    ],
    program: "opencode",
  }),
  trust: "lets the dex-retrieval sub-agent call dex's tools and commands without asking you. They only read.",
  files: (machine, bin) => [
    {
      path: opencodeSettings(machine),
      additions: [
        {
          type: "property",
          path: ["mcp", "dex"],
          value: { type: "local", command: Object.values(serverStart(bin)).flat(), enabled: true },
        },
      ],
    },
    ...(bin.hook === undefined || !isSetUp(opencodeFolder(machine))
      ? []
      : [
          {
            path: join(opencodeFolder(machine), "plugin", "dex.js"),
            additions: [{ type: "file" as const, content: opencodePlugin(bin.hook, bin.windows?.node) }],
          },
        ]),
    { path: join(opencodeFolder(machine), "skills", "dex", "SKILL.md"), additions: [skillFile({ subagent: true })] },
    {
      path: join(opencodeFolder(machine), "agents", `${RETRIEVAL_AGENT}.md`),
      additions: [opencodeSubagent(shellStart(bin))],
      role: "subagent",
    },
  ],
  note: (machine, { hook }) =>
    hook !== undefined && !isSetUp(opencodeFolder(machine))
      ? `no hooks yet: OpenCode downloads its plugin library on the next start, and offline it would hang. Run OpenCode once online until ${join(opencodeFolder(machine), "package-lock.json")} exists, then run \`dex install\` again`
      : "no sync hook: OpenCode's sessions are read when another agent or command syncs",
}

const MAX_BYTES = 64 << 20

/**
 * Whether OpenCode has installed its plugin library into this folder: the folder then has the library's modules, and the lock
 * file names it as a dependency. OpenCode installs it in the background, but waits for it if there is any plugin.
 */
function isSetUp(folder: string): boolean {
  try {
    const lock = JSON.parse(readText(join(folder, "package-lock.json"), MAX_BYTES)) as {
      packages?: Record<string, { dependencies?: Record<string, string> }>
    }
    return (
      lock.packages?.[""]?.dependencies?.["@opencode-ai/plugin"] !== undefined &&
      existsSync(join(folder, "node_modules"))
    )
  } catch {
    return false // missing or unfinished
  }
}

/**
 * The text of a plugin that OpenCode loads. It imports only Node's modules, runs dex in a separate process, and never throws.
 * `node` runs the hook's program if the program is not executable.
 */
function opencodePlugin(hook: string, node?: string): string {
  const start =
    node === undefined
      ? 'spawn(HOOK, ["opencode", event], { stdio: ["pipe", "pipe", "ignore"] })'
      : 'spawn(NODE, [HOOK, "opencode", event], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })'
  return `// Offers what dex remembers at the moment it may help. Written by \`dex install\`; \`dex uninstall\` removes it.
import { spawn } from "node:child_process"

const HOOK = ${JSON.stringify(hook)}
${node === undefined ? "" : `const NODE = ${JSON.stringify(node)}\n`}
const ask = (event, input) =>
  new Promise((done) => {
    try {
      let said = ""
      const child = ${start}
      const timer = setTimeout(() => {
        done("")
        child.kill("SIGKILL")
      }, ${HOOK_TIMEOUT_MS})
      const end = (text) => {
        clearTimeout(timer)
        done(text)
      }
      child.on("error", () => end(""))
      child.on("close", (code) => end(code === 0 ? said.trim() : ""))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8").on("data", (text) => {
        if (said.length < 20000) said += text
      })
      child.stdin.end(JSON.stringify(input))
    } catch {
      done("")
    }
  })

export const Dex = async ({ directory }) => {
  const started = new Set()
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      try {
        const typed = parts.find((part) => part.type === "text" && !part.synthetic)
        if (!typed) return
        const input = { session_id: sessionID, cwd: directory, prompt: typed.text }
        const isFirst = !started.has(sessionID)
        started.add(sessionID)
        const said = await Promise.all([isFirst ? ask("session.start", input) : "", ask("chat.message", input)])
        for (const text of said.filter(Boolean))
          parts.push({ ...typed, id: \`prt_zz\${Date.now().toString(16)}dex\${parts.length}\`, text, synthetic: true })
      } catch {}
    },
    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      try {
        const exit = output.metadata?.exit
        if (typeof output.output !== "string" || !(tool === "read" || (tool === "bash" && exit))) return
        const said = await ask("tool.execute.after", {
          session_id: sessionID,
          cwd: directory,
          tool_name: tool,
          tool_input: args,
          ...(tool === "bash" && { exit, output: output.output }),
        })
        if (said) output.output += \`\\n\\n\${said}\`
      } catch {}
    },
  }
}
`
}

/** The user's settings file, or `opencode.json` if there is none. */
export function opencodeSettings(machine: Machine): string {
  const names = ["opencode.jsonc", "opencode.json", "config.json"]
  const paths = names.map((name) => join(opencodeFolder(machine), name))
  return paths.find((path) => existsSync(path)) ?? paths[1]!
}

function opencodeFolder({ home, env }: Machine): string {
  return join(xdgFolder(env.XDG_CONFIG_HOME, home, ".config"), "opencode")
}

function xdgFolder(configured: string | undefined, home: string, ...fallback: string[]): string {
  return configured && isAbsolute(configured) ? configured : join(home, ...fallback)
}
