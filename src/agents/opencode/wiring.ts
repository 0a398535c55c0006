import { existsSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import { readText } from "../../core/read-file.ts"
import type { Machine } from "../kit/connector.ts"
import {
  opencodeSubagent,
  openSkill,
  pluginCode,
  RETRIEVAL_AGENT,
  serverStart,
  shellStart,
  type Wiring,
} from "../kit/wiring.ts"

/** How OpenCode and Kilo, which shares its code, differ. */
type Variant = {
  source: string
  program: string
  /** The names of the settings file, the preferred one first. The second one is created if there is none. */
  settingsNames: readonly string[]
  /** Whether it loads a plugin without waiting for the network. */
  loadsPlugins(folder: string): boolean
  note: NonNullable<Wiring["note"]>
}

function wiringOf({ source, program, settingsNames, loadsPlugins, note }: Variant): Wiring {
  const folderOf = (machine: Machine) => settingsFolderOf(machine, program)
  return {
    signs: (machine) => ({
      paths: [folderOf(machine), join(xdgFolder(machine.env.XDG_DATA_HOME, machine.home, ".local", "share"), program)],
      program,
    }),
    trust: "lets the dex-retrieval sub-agent call dex's tools and commands without asking you. They only read.",
    formerFiles: (machine) => [join(folderOf(machine), "skills", "dex", "SKILL.md")],
    files: (machine, bin) => [
      {
        path: settingsFileIn(folderOf(machine), settingsNames),
        additions: [
          {
            type: "property",
            path: ["mcp", "dex"],
            value: { type: "local", command: Object.values(serverStart(bin)).flat(), enabled: true },
          },
        ],
      },
      ...(bin.hook === undefined || !loadsPlugins(folderOf(machine))
        ? []
        : [
            {
              path: join(folderOf(machine), "plugin", "dex.js"),
              additions: [{ type: "file" as const, content: opencodePlugin(source, bin.hook, bin.windows?.node) }],
            },
          ]),
      openSkill(machine),
      {
        path: join(folderOf(machine), "agents", `${RETRIEVAL_AGENT}.md`),
        additions: [opencodeSubagent(shellStart(bin))],
        role: "subagent",
      },
    ],
    note,
  }
}

const OPENCODE_SETTINGS = ["opencode.jsonc", "opencode.json", "config.json"]

export const opencodeWiring = wiringOf({
  source: "opencode",
  program: "opencode",
  settingsNames: OPENCODE_SETTINGS,
  loadsPlugins: isSetUp,
  note: (machine, { hook }) =>
    hook !== undefined && !isSetUp(opencodeFolder(machine))
      ? `no hooks yet: OpenCode downloads its plugin library on the next start, and offline it would hang. Run OpenCode once online until ${join(opencodeFolder(machine), "package-lock.json")} exists, then run \`dex install\` again`
      : "no sync hook: dex reads OpenCode's sessions when another agent or a command starts a sync",
})

export const kiloWiring = wiringOf({
  source: "kilo",
  program: "kilo",
  settingsNames: ["kilo.jsonc", "kilo.json"],
  loadsPlugins: () => true,
  note: () => "no sync hook: dex reads Kilo's sessions when another agent or a command starts a sync",
})

const MAX_LOCK_FILE_BYTES = 64 << 20

/**
 * Whether OpenCode has installed its plugin library into this folder: the folder then has the library's modules, and the lock
 * file names it as a dependency. OpenCode installs it in the background, but waits for it if there is any plugin.
 */
function isSetUp(folder: string): boolean {
  try {
    const lock = JSON.parse(readText(join(folder, "package-lock.json"), MAX_LOCK_FILE_BYTES)) as {
      packages?: Record<string, { dependencies?: Record<string, string> }>
    }
    return (
      lock.packages?.[""]?.dependencies?.["@opencode-ai/plugin"] !== undefined &&
      existsSync(join(folder, "node_modules"))
    )
  } catch {
    return false // the files are missing or incomplete
  }
}

/** Returns the code of a plugin that OpenCode and Kilo load. The plugin imports only Node's modules and never throws. */
function opencodePlugin(source: string, hook: string, node?: string): string {
  return `${pluginCode(source, hook, node)}
export const Dex = async ({ directory }) => {
  const started = new Set()
  const compacted = new Set()
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
    "experimental.session.compacting": async ({ sessionID }) => {
      compacted.add(sessionID)
      await ask("session.compacting", { session_id: sessionID, cwd: directory })
    },
    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      try {
        const exit = output.metadata?.exit
        // After a compaction, every tool is a moment to give back what was kept.
        const isDue = compacted.delete(sessionID)
        if (typeof output.output !== "string" || !(isDue || tool === "read" || (tool === "bash" && exit))) return
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

/** Returns the path of the user's settings file, or of `opencode.json` if there is none. */
export function opencodeSettings(machine: Machine): string {
  return settingsFileIn(opencodeFolder(machine), OPENCODE_SETTINGS)
}

function settingsFileIn(folder: string, names: readonly string[]): string {
  const paths = names.map((name) => join(folder, name))
  return paths.find((path) => existsSync(path)) ?? paths[1]!
}

function opencodeFolder(machine: Machine): string {
  return settingsFolderOf(machine, "opencode")
}

function settingsFolderOf({ home, env }: Machine, program: string): string {
  return join(xdgFolder(env.XDG_CONFIG_HOME, home, ".config"), program)
}

function xdgFolder(configured: string | undefined, home: string, ...fallback: string[]): string {
  return configured && isAbsolute(configured) ? configured : join(home, ...fallback)
}
