import { isAbsolute, join } from "node:path"
import type { Agent } from "../agent.ts"
import type { Machine } from "../kit/connector.ts"
import { variantOf } from "../kit/variant.ts"
import { opencode } from "./agent.ts"

export const kilo: Agent = variantOf(opencode, {
  source: "kilo",
  name: "Kilo",
  aliases: ["kilo_code"],
  basis: "sample",
  roots: (machine) => [dataFolder(machine, "kilo")],
  resume: (id) => ["kilo", "--session", id],
  open: ["kilo", "--prompt"],
})

export const mimocode: Agent = variantOf(opencode, {
  source: "mimocode",
  name: "MiMoCode",
  basis: "description",
  roots: (machine) => [dataFolder(machine, "mimocode")],
})

/** As OpenCode's, on every system. */
function dataFolder({ home, env }: Machine, name: string): string {
  const xdg = env.XDG_DATA_HOME
  return join(xdg && isAbsolute(xdg) ? xdg : join(home, ".local", "share"), name)
}
