import { existsSync } from "node:fs"
import { join } from "node:path"
import { readText } from "../../files/read-file.ts"
import { opencodeAgent, RETRIEVAL_AGENT } from "../kit/retrieval-agent.ts"
import { skill } from "../kit/skill.ts"
import { serverStart, shellStart } from "../kit/start.ts"
import type { Wiring } from "../kit/wiring.ts"
import { opencodePlugin } from "./plugin.ts"
import { opencodeFolder, opencodeSettings, xdgFolder } from "./settings-file.ts"

export const opencodeWiring: Wiring = {
  signs: (machine) => ({
    paths: [
      opencodeFolder(machine),
      join(xdgFolder(machine.env.XDG_DATA_HOME, machine.home, ".local", "share"), "opencode"),
    ],
    program: "opencode",
  }),
  trust: "lets the dex-retrieval sub-agent call dex's tools and commands without asking you. They only read.",
  wanted: (machine, bin) => [
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
    { path: join(opencodeFolder(machine), "skills", "dex", "SKILL.md"), additions: [skill({ subagent: true })] },
    {
      path: join(opencodeFolder(machine), "agents", `${RETRIEVAL_AGENT}.md`),
      additions: [opencodeAgent(shellStart(bin))],
      is: "subagent",
    },
  ],
  note: (machine, { hook }) =>
    hook !== undefined && !isSetUp(opencodeFolder(machine))
      ? `no hooks yet: OpenCode downloads its plugin library on the next start, and offline it would hang. Run OpenCode once online until ${join(opencodeFolder(machine), "package-lock.json")} is there, then run \`dex install\` again`
      : "no sync hook: OpenCode's sessions are read when another agent or command syncs",
}

const MOST_BYTES = 64 << 20

/**
 * OpenCode installs its plugins' library into this folder, in the background; with a plugin of whatever kind it waits for
 * that. It looks for the folder of modules, and for the library's name among the lock's own dependencies.
 */
function isSetUp(folder: string): boolean {
  try {
    const lock = JSON.parse(readText(join(folder, "package-lock.json"), MOST_BYTES)) as {
      packages?: Record<string, { dependencies?: Record<string, string> }>
    }
    return (
      lock.packages?.[""]?.dependencies?.["@opencode-ai/plugin"] !== undefined &&
      existsSync(join(folder, "node_modules"))
    )
  } catch {
    return false // not there, or not finished
  }
}
