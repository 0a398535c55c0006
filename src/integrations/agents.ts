import { accessSync, constants, existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { Machine } from "../agents/kit/connector.ts"
import type { Wiring } from "../agents/kit/wiring.ts"
import { agents } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"

/** An agent to whose settings dex can be added. */
export type WirableAgent = Wiring & { agent: SourceId; title: string }

const wirableAgents = agents.filter(({ wiring }) => wiring !== undefined)
export const wirableNames: readonly SourceId[] = wirableAgents.map(({ source }) => source)

export async function loadWirings(): Promise<WirableAgent[]> {
  return Promise.all(
    wirableAgents.map(async ({ source, name, wiring }) => ({ agent: source, title: name, ...(await wiring!()) })),
  )
}

/** Resolves the names that people type. Throws a DexError for an unknown name. */
export function resolveAgents(names: readonly string[]): SourceId[] {
  const chosen = names.map((name) => {
    const normalised = name.toLowerCase().replaceAll("-", "_")
    const agent = wirableAgents.find(({ source, aliases }) => source === normalised || aliases?.includes(normalised))
    if (agent === undefined)
      throw new DexError("usage", `dex does not know the agent "${name}". It knows ${wirableNames.join(", ")}.`)
    return agent.source
  })
  return wirableNames.filter((name) => chosen.includes(name))
}

export function isInstalled(agent: Wiring, machine: Machine): boolean {
  const { paths, program } = agent.signs(machine)
  return paths.some((path) => existsSync(path)) || (program !== undefined && isOnPath(program, machine))
}

/** The name of the agent's program, if it has one that is not on PATH. */
export function missingProgram(agent: Wiring, machine: Machine): string | undefined {
  const { program } = agent.signs(machine)
  return program === undefined || isOnPath(program, machine) ? undefined : program
}

export function isOnPath(program: string, { env, platform }: Pick<Machine, "env" | "platform">): boolean {
  const extensions = platform === "win32" ? [".exe", ".cmd", ".bat"] : [""]
  return (env.PATH ?? "")
    .split(delimiter)
    .filter(Boolean)
    .some((folder) => extensions.some((extension) => isExecutable(join(folder, program + extension))))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
