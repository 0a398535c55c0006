import { existsSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import type { Machine } from "../connectors/connector.ts"
import type { Agent } from "./agent.ts"
import { opencodeAgent, RETRIEVAL_AGENT } from "./retrieval-agent.ts"
import { skill } from "./skill.ts"
import { shellWord } from "./sync-hook.ts"

export const opencode: Agent = {
  name: "opencode",
  title: "OpenCode",
  signs: (machine) => ({
    paths: [folder(machine), join(xdg(machine.env.XDG_DATA_HOME, machine.home, ".local", "share"), "opencode")],
    program: "opencode",
  }),
  wanted: (machine, bin) => [
    {
      path: settings(machine),
      additions: [
        {
          type: "property",
          path: ["mcp", "dex"],
          value: { type: "local", command: [bin.dex, "serve"], enabled: true },
        },
      ],
    },
    { path: join(folder(machine), "skills", "dex", "SKILL.md"), additions: [skill({ subagent: true })] },
    {
      path: join(folder(machine), "agents", `${RETRIEVAL_AGENT}.md`),
      additions: [opencodeAgent(shellWord(bin.dex))],
      is: "subagent",
    },
  ],
  left_out: "no sync hook: an OpenCode plugin makes its start wait for npm",
}

/** The one that is there; `opencode.json` where none is. */
function settings(machine: Machine): string {
  const names = ["opencode.jsonc", "opencode.json", "config.json"]
  const paths = names.map((name) => join(folder(machine), name))
  return paths.find((path) => existsSync(path)) ?? paths[1]!
}

function folder({ home, env }: Machine): string {
  return join(xdg(env.XDG_CONFIG_HOME, home, ".config"), "opencode")
}

function xdg(set: string | undefined, home: string, ...fallback: string[]): string {
  return set && isAbsolute(set) ? set : join(home, ...fallback)
}
