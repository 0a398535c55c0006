import { join } from "node:path"
import { skill } from "../kit/skill.ts"
import { serverStart } from "../kit/start.ts"
import type { Wiring } from "../kit/wiring.ts"

export const cursorWiring: Wiring = {
  signs: ({ home }) => ({ paths: [join(home, ".cursor")], program: "cursor-agent" }),
  wanted: ({ home }, bin) => [
    {
      path: join(home, ".cursor", "mcp.json"),
      additions: [{ type: "property", path: ["mcpServers", "dex"], value: serverStart(bin) }],
    },
    { path: join(home, ".cursor", "skills", "dex", "SKILL.md"), additions: [skill({ subagent: false })] },
  ],
  note: () => "no sub-agent: untested with this program",
}
