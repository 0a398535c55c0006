import { join } from "node:path"
import type { Agent } from "../agent.ts"
import { variantOf } from "../kit/variant.ts"
import { codex } from "./agent.ts"

export const traeX: Agent = variantOf(codex, {
  source: "traex",
  name: "TraeX",
  aliases: ["trae_cli"],
  basis: "sample",
  roots: ({ home }) => [join(home, ".trae", "cli")],
  resume: (id) => ["traex", "resume", id],
  open: ["traex"],
})

export const openInterpreter: Agent = variantOf(codex, {
  source: "open_interpreter",
  name: "Open Interpreter",
  basis: "description",
  roots: ({ home }) => [join(home, ".openinterpreter")],
})
