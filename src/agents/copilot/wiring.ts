import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import { serverStart } from "../kit/start.ts"
import type { Wiring } from "../kit/wiring.ts"

export const copilotWiring: Wiring = {
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
  note: () => "no sub-agent: untested with this program",
}

function folder({ home, env }: Machine): string {
  return env.COPILOT_HOME || join(home, ".copilot")
}
