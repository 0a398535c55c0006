import { join } from "node:path"
import type { Machine } from "../connectors/connector.ts"
import type { Agent } from "./agent.ts"
import { SKILL } from "./skill.ts"
import { syncHook } from "./sync-hook.ts"

export const geminiCli: Agent = {
  name: "gemini_cli",
  title: "Gemini CLI",
  signs: (machine) => ({ paths: [folder(machine)], program: "gemini" }),
  wanted: (machine, bin) => [
    {
      path: join(folder(machine), "settings.json"),
      additions: [
        // Trusted: every tool of dex only reads.
        { type: "property", path: ["mcpServers", "dex"], value: { command: bin.dex, args: ["serve"], trust: true } },
        ...["SessionStart", "SessionEnd"].flatMap((event) => syncHook(event, bin)),
      ],
    },
    { path: join(folder(machine), "skills", "dex", "SKILL.md"), additions: [SKILL] },
  ],
}

function folder({ home, env }: Machine): string {
  return join(env.GEMINI_CLI_HOME || home, ".gemini")
}
