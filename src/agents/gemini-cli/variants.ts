import { join } from "node:path"
import type { Agent } from "../agent.ts"
import { variantOf } from "../kit/variant.ts"
import { geminiCli } from "./agent.ts"

export const tabnineCli: Agent = variantOf(geminiCli, {
  source: "tabnine_cli",
  name: "Tabnine CLI",
  aliases: ["tabnine"],
  basis: "description",
  roots: ({ home }) => [join(home, ".tabnine", "agent")],
})
