import { join } from "node:path"
import type { Agent } from "../agent.ts"
import type { Machine } from "../kit/connector.ts"
import { variantOf } from "../kit/variant.ts"
import { claudeCode } from "./agent.ts"

export const openClaude: Agent = variantOf(claudeCode, {
  source: "openclaude",
  name: "OpenClaude",
  basis: "description",
  roots: ({ home, env }) => [env.OPENCLAUDE_CONFIG_DIR || join(home, ".openclaude")],
  resume: (id) => ["openclaude", "--resume", id],
  open: ["openclaude"],
})

export const iflow: Agent = variantOf(claudeCode, {
  source: "iflow",
  name: "iFlow",
  basis: "description",
  roots: ({ home }) => [join(home, ".iflow")],
  differs: async (parent) => (await import("./iflow.ts")).iflowDifferences(parent),
})

export const qoder: Agent = variantOf(claudeCode, {
  source: "qoder",
  name: "Qoder",
  basis: "description",
  roots: (machine) => [join(machine.home, ".qoder"), join(machine.home, ".qoderwork"), sharedCache(machine)],
  differs: async (parent) => (await import("./qoder.ts")).qoderDifferences(parent),
})

/** Where its editor keeps what its command line would. */
function sharedCache({ home, env, platform }: Machine): string {
  const below = ["Qoder", "SharedClientCache", "cli"]
  if (platform === "darwin") return join(home, "Library", "Application Support", ...below)
  if (platform === "win32") return join(env.APPDATA || join(home, "AppData", "Roaming"), ...below)
  return join(env.XDG_CONFIG_HOME || join(home, ".config"), ...below)
}
