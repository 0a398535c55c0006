import { join } from "node:path"
import { serverStart } from "../kit/start.ts"
import type { Wiring } from "../kit/wiring.ts"
import { copilotFolder } from "./roots.ts"

export const copilotWiring: Wiring = {
  signs: (machine) => ({ paths: [copilotFolder(machine)], program: "copilot" }),
  wanted: (machine, bin) => [
    {
      path: join(copilotFolder(machine), "mcp-config.json"),
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
