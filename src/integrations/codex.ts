import { join } from "node:path"
import type { Machine } from "../connectors/connector.ts"
import type { Agent } from "./agent.ts"
import { codexAgent, RETRIEVAL_AGENT } from "./retrieval-agent.ts"
import { skill } from "./skill.ts"
import { shellWord } from "./sync-hook.ts"

export const codex: Agent = {
  name: "codex",
  title: "Codex",
  signs: (machine) => ({ paths: [folder(machine)], program: "codex" }),
  wanted: (machine, bin) => [
    {
      path: join(folder(machine), "config.toml"),
      additions: [
        {
          type: "table",
          path: ["mcp_servers", "dex"],
          // Without `required`, Codex may send its first request before it knows the tools.
          values: { command: bin.dex, args: ["serve"], required: true },
        },
      ],
    },
    { path: join(folder(machine), "skills", "dex", "SKILL.md"), additions: [skill({ subagent: true })] },
    {
      path: join(folder(machine), "agents", `${RETRIEVAL_AGENT}.toml`),
      additions: [codexAgent(shellWord(bin.dex))],
      is: "subagent",
    },
  ],
  left_out: "no sync hook: Codex skips hooks that it was not told to trust",
}

function folder({ home, env }: Machine): string {
  return env.CODEX_HOME || join(home, ".codex")
}
