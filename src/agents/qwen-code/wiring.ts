import { join } from "node:path"
import { serverStart } from "../kit/start.ts"
import type { Wiring } from "../kit/wiring.ts"
import { qwenCodeFolder } from "./roots.ts"

export const qwenCodeWiring: Wiring = {
  signs: (machine) => ({ paths: [qwenCodeFolder(machine)], program: "qwen" }),
  trust:
    "calls dex's tools without asking you, since dex is marked as trusted. They change nothing but dex's own records.",
  wanted: (machine, bin) => [
    {
      path: join(qwenCodeFolder(machine), "settings.json"),
      additions: [{ type: "property", path: ["mcpServers", "dex"], value: { ...serverStart(bin), trust: true } }],
    },
  ],
  note: () => "no hooks and no sub-agent: untested with this program",
}
