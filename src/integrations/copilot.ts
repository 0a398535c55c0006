import { join } from "node:path"
import type { Machine } from "../connectors/connector.ts"
import type { Agent } from "./agent.ts"
import { serverStart } from "./start.ts"

export const copilot: Agent = {
  name: "copilot",
  title: "Copilot CLI",
  signs: (machine) => ({ paths: [folder(machine)], program: "copilot" }),
  wanted: (machine, bin) => [
    {
      path: join(folder(machine), "mcp-config.json"),
      additions: [
        {
          type: "property",
          path: ["mcpServers", "dex"],
          value: { type: "local", ...serverStart(bin), tools: ["*"] },
        },
      ],
    },
  ],
  note: () => "no sub-agent: not tried with the program",
}

function folder({ home, env }: Machine): string {
  return env.COPILOT_HOME || join(home, ".copilot")
}
