import { join } from "node:path"
import type { Agent } from "./agent.ts"
import { skill } from "./skill.ts"
import { serverStart } from "./start.ts"

export const cursor: Agent = {
  name: "cursor",
  title: "Cursor",
  signs: ({ home }) => ({ paths: [join(home, ".cursor")], program: "cursor-agent" }),
  wanted: ({ home }, bin) => [
    {
      path: join(home, ".cursor", "mcp.json"),
      additions: [{ type: "property", path: ["mcpServers", "dex"], value: serverStart(bin) }],
    },
    { path: join(home, ".cursor", "skills", "dex", "SKILL.md"), additions: [skill({ subagent: false })] },
  ],
  note: () => "no sub-agent: not tried with the program",
}
