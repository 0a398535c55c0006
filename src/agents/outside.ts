import { createRequire } from "node:module"
import { homedir } from "node:os"
import { join, parse } from "node:path"
import { pathToFileURL } from "node:url"
import { ROLES } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import { choice, decimal, integer, listOf, mapOf, object, optional, readAs, type Schema, text } from "../core/schema.ts"
import { type Connector, isUnreadable, type OutsideAgent } from "./kit/connector.ts"
import { sourceIds } from "./registry.ts"

// Agents that a user adds: modules named in the settings, each exporting a record like dex's own. dex finds, reads and resumes
// their sessions like those of any other agent, but only built-in agents have hooks and wiring.

export type UnloadedAgent = { path: string; reason: string }
export type OutsideAgents = { agents: (OutsideAgent & { path: string })[]; unloaded: UnloadedAgent[] }

/** Loads the user's agents. An agent that cannot be loaded does not stop the others. */
export async function loadOutside(names: readonly string[], dexDir: string): Promise<OutsideAgents> {
  const outside: OutsideAgents = { agents: [], unloaded: [] }
  for (const name of names) {
    try {
      const path = fileOf(name, dexDir)
      const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>
      const agent = await agentIn(module)
      if (outside.agents.some(({ source }) => source === agent.source))
        throw new Error(`another agent already has the source ${agent.source}; choose a different one`)
      outside.agents.push({ ...agent, path })
    } catch (error) {
      outside.unloaded.push({ path: name, reason: messageOf(error).split("\n")[0]! })
    }
  }
  return outside
}

function fileOf(name: string, dexDir: string): string {
  const path = name.startsWith("~/") ? join(homedir(), name.slice(2)) : name
  return createRequire(join(dexDir, "agents.js")).resolve(path)
}

async function agentIn(module: Record<string, unknown>): Promise<OutsideAgent> {
  const exported = (module.agent ?? module.default) as Partial<OutsideAgent> | undefined
  const problem = problemWith(exported)
  if (problem !== undefined) throw new Error(problem)
  const { source, name, resume, connector } = exported as OutsideAgent
  const checked = checkedConnector(await connector(), source)
  return { source, name, resume, connector: async () => checked }
}

function problemWith(agent: Partial<OutsideAgent> | undefined): string | undefined {
  if (typeof agent !== "object" || agent === null) return "it exports no `agent`"
  const { source, name, connector } = agent
  if (typeof source !== "string" || !/^[a-z][a-z0-9_]{1,39}$/.test(source))
    return "the agent's `source` must be a short name that consists of lower-case letters, digits and _"
  if (sourceIds.includes(source) || source === "git")
    return `dex itself has an agent with the source ${source}; choose a different one`
  if (typeof name !== "string" || name.trim() === "") return "the agent has no `name`"
  return typeof connector === "function" ? undefined : "the agent has no `connector` function"
}

const REQUIRED_METHODS = ["roots", "discover", "read", "parse"] as const

/** Returns a connector that checks its results at run time, because the compiler checks only dex's own connectors. */
function checkedConnector(connector: Connector, source: string): Connector {
  if (typeof connector !== "object" || connector === null) throw new Error("its `connector` must return an object")
  const missing = REQUIRED_METHODS.find((method) => typeof connector[method] !== "function")
  if (missing !== undefined) throw new Error(`its connector has no \`${missing}\``)
  if (connector.source !== source)
    throw new Error(`its connector's \`source\` is ${String(connector.source)} instead of ${source}`)
  if (!Number.isSafeInteger(connector.version)) throw new Error("its connector's `version` must be a whole number")
  let rootsError: unknown
  const overrides: Pick<Connector, "isOutside" | "roots" | "discover" | "watched" | "parse"> = {
    isOutside: true,
    roots: (machine) => {
      try {
        rootsError = undefined
        return requireShape(ROOTS_SCHEMA, "roots", connector.roots(machine))
      } catch (error) {
        rootsError = error
        // `discover` reports the error for this folder, so that no conversation below it counts as deleted.
        return [parse(machine.home).root]
      }
    },
    watched: (root) =>
      rootsError === undefined ? (connector.watched?.(root) ?? [{ folder: root, depth: Infinity }]) : [],
    discover: function* (root, isUnchanged, scratch) {
      if (rootsError !== undefined) throw rootsError
      for (const unit of connector.discover(root, isUnchanged, scratch))
        yield isUnreadable(unit) ? unit : requireShape(UNIT_SCHEMA, "discover", unit)
    },
    parse: (records, unit) => requireShape(PARSED_SCHEMA, "parse", connector.parse(records, unit)),
  }
  return Object.assign(Object.create(connector) as Connector, overrides)
}

/** Accepts an object with these fields. Other fields (a title, effects, usage) are not checked. */
const objectWith = (fields: Record<string, Schema>): Schema => ({ ...object(fields), additionalProperties: true })

const NON_EMPTY_TEXT = text("", { minLength: 1 })
const ROOTS_SCHEMA = listOf(NON_EMPTY_TEXT)
const UNIT_SCHEMA = objectWith({
  key: NON_EMPTY_TEXT,
  path: NON_EMPTY_TEXT,
  stamp: text(),
  bytes: decimal(),
  modifiedAt: decimal(),
  bornAt: decimal(),
})
const MESSAGE_SCHEMA = objectWith({
  key: NON_EMPTY_TEXT,
  role: choice(ROLES),
  at: optional(decimal()),
  parts: listOf(objectWith({ type: text(), text: text(), origin: text() })),
})
const PARSED_SCHEMA = objectWith({
  conversations: listOf(
    objectWith({
      id: NON_EMPTY_TEXT,
      kind: choice(["person", "subagent", "automation", "dex"]),
      cwds: listOf(text()),
      authority: decimal(),
      messages: listOf(MESSAGE_SCHEMA),
    }),
  ),
  unknown: mapOf(integer()),
})

function requireShape<T>(shape: Schema, method: string, value: T): T {
  const result = readAs(shape, value)
  if ("wrong" in result)
    throw new Error(`its \`${method}\` returned an invalid value: ${result.wrong.replace(/^input /, "")}`)
  return value
}
