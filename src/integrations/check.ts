import type { Machine } from "../agents/kit/connector.ts"
import type { WantedFile } from "../agents/kit/wiring.ts"
import type { SourceId } from "../core/conversation.ts"
import { isInstalled, loadWirings, namedAgents } from "./agents.ts"
import { EditProblem } from "./edit.ts"
import { readEditable } from "./files.ts"
import { binOf } from "./launcher.ts"
import { additionName, hasAddition } from "./plan.ts"
import { probe, type ServerProbe } from "./probe.ts"
import { type Added, readRecord } from "./record.ts"
import { recordFile, type WiringContext } from "./wiring.ts"

export type WiringCheck = {
  agents: {
    agent: SourceId
    title: string
    found: boolean
    wired: boolean
    problems: string[]
    subagent?: "there" | "changed" | "missing"
  }[]
  servers: (ServerProbe & { command: string[]; agents: SourceId[] })[]
}

/** What is wired, whether the files still say so, and whether each command that they name starts and answers. */
export async function check(
  { dexHome, machine, program }: Pick<WiringContext, "dexHome" | "machine" | "program">,
  names: readonly string[],
): Promise<WiringCheck> {
  const named = namedAgents(names)
  const record = Object.entries(readRecord(recordFile(dexHome)))
  const about = (await loadWirings()).filter(({ agent }) => named.length === 0 || named.includes(agent))
  const bin = binOf(dexHome, machine, program.node)
  const commands = new Map<string, SourceId[]>()
  const checked = about.map((wiring) => {
    const { agent, title } = wiring
    const files = record.filter(([, added]) => added.agent === agent)
    for (const command of new Set(files.flatMap(([, added]) => commandsOf(added))))
      commands.set(command, [...(commands.get(command) ?? []), agent])
    return {
      agent,
      title,
      found: isInstalled(wiring, machine),
      wired: files.length > 0,
      problems: files.flatMap(([path, added]) => problemsOf(path, added)),
      ...(files.length > 0 && subagentOf(wiring.wanted(machine, bin))),
    }
  })
  const env = bareEnvironment(machine)
  const servers = await Promise.all(
    [...commands].map(async ([key, users]) => {
      const command = JSON.parse(key) as string[]
      return { command, agents: users, ...(await probe(command, env)) }
    }),
  )
  return { agents: checked, servers }
}

/** As little as an agent that was started from a desktop hands on. */
function bareEnvironment({ home, env, platform }: Machine): Record<string, string> {
  if (platform !== "win32") return { HOME: home, PATH: "/usr/bin:/bin" }
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function subagentOf(wanted: WantedFile[]): Pick<WiringCheck["agents"][number], "subagent"> {
  const file = wanted.find(({ is }) => is === "subagent")
  if (file === undefined) return {}
  try {
    const text = readEditable(file.path)
    if (text === undefined) return { subagent: "missing" }
    return { subagent: file.additions.every((addition) => hasAddition(text, addition)) ? "there" : "changed" }
  } catch (error) {
    if (error instanceof EditProblem) return { subagent: "changed" }
    throw error
  }
}

function problemsOf(path: string, { additions }: Added): string[] {
  try {
    const text = readEditable(path)
    if (text === undefined) return [`${path} is gone.`]
    const lost = additions.filter((addition) => !hasAddition(text, addition))
    return lost.map((addition) =>
      addition.type === "file"
        ? `${path} was changed since dex wrote it.`
        : `${path} no longer holds ${additionName(addition)} as dex wrote it.`,
    )
  } catch (error) {
    if (error instanceof EditProblem) return [`${path} ${error.message}.`]
    throw error
  }
}

/** Each as JSON, so that equal ones are started once. */
function commandsOf({ additions }: Added): string[] {
  return additions.flatMap((addition) => {
    const entry =
      addition.type === "property" ? addition.value : addition.type === "table" ? addition.values : undefined
    const { command, args } = (entry ?? {}) as { command?: string | string[]; args?: string[] }
    return command === undefined ? [] : [JSON.stringify([command, args ?? []].flat())]
  })
}
