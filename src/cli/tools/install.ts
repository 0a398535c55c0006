import { lstatSync, readdirSync, realpathSync, rmdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { agents, isDexSource } from "../../agents/registry.ts"
import { DexError } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { choice, flag, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import { pathBelow } from "../../learn/paths.ts"
import type { Dex } from "../../tools/context.ts"

// These tools are not in src/tools, because only a person may let an agent start a program.

const WIRABLE_AGENTS = agents.filter(({ wiring }) => wiring !== undefined).map(({ source }) => source)

const wiring = object({
  agents: listOf(
    object({
      agent: text(),
      title: text(),
      found: flag("The agent is on this machine."),
      absent: optional(text("The agent's program, if it is not on PATH although its settings exist.")),
      wired: optional(flag("With check: dex is connected to it.")),
      trust: optional(text("What the agent does without asking, once dex is connected.")),
      note: optional(text("What dex does not set up for the agent, and why.")),
      problems: optional(listOf(text(), "With check: what has changed since dex wrote it.")),
      subagent: optional(
        choice(["there", "changed", "missing"], "With check: the dex-retrieval sub-agent, if the agent supports one."),
      ),
    }),
  ),
  files: listOf(
    object({
      agent: text("The agent's id, or dex for the launchers that all agents share."),
      path: text(),
      change: choice(["none", "create", "edit", "remove", "problem"]),
      diff: text("In the unified format, with secrets masked."),
      problem: optional(text()),
      note: optional(text()),
      backup: optional(text("A copy of the file before the change.")),
    }),
  ),
  only_read: optional(listOf(text(), "Agents whose conversations dex reads, but that are not connected.")),
  asked: flag("Nothing was changed yet. Set yes to make the changes."),
  hooks: optional(flag("The agents' hooks call dex.")),
  private_asked: optional(flag("The person was asked which projects are private, which needs a terminal.")),
  launcher_kept: optional(
    flag("With uninstall: the launcher stays, because an entry that was changed still starts it."),
  ),
  data: optional(
    object(
      { folder: text(), bytes: integer(), deleted: flag(), stays: listOf(text(), "What dex did not write there.") },
      "With data: dex's own folder.",
    ),
  ),
  servers: optional(
    listOf(
      object({
        command: listOf(text()),
        agents: listOf(text()),
        works: flag("The server was started and answered."),
        message: text(),
        tools: optional(integer()),
      }),
      "With check: the commands that agents are configured to start.",
    ),
  ),
})

export const install = defineTool({
  name: "install",
  summary: "Connect dex to your coding agents",
  input: object({
    agents: withDefault(listOf(text(), `${WIRABLE_AGENTS.join(", ")}; all that are found if omitted.`), []),
    check: optional(flag("Only show what is connected, and start the server to check that it answers.")),
    hooks: optional(
      flag(
        "Let dex make suggestions through the agents' hooks. For the first week, those that are not certain are only recorded.",
      ),
    ),
    speak: optional(flag("Let the hooks make suggestions at once, without the silent week.")),
    no_hooks: optional(flag("Install no hooks, and remove those that are there.")),
    yes: optional(flag("Do not ask.")),
  }),
  output: wiring,
  cli: { group: "Agents", common: true, positional: "agents", short: { y: "yes" }, example: "dex install" },
  run: async (dex: Dex, input) => {
    if (input.check === true) {
      const { checkWiring } = await import("../../integrations/check.ts")
      return { ...(await checkWiring(contextOf(dex), input.agents)), files: [], asked: false }
    }
    const { wireAgents } = await import("../../integrations/wiring.ts")
    const hooks = input.no_hooks ? false : (input.speak ?? input.hooks)
    const report = await wireAgents(contextOf(dex), input.agents, input.yes === true, hooks)
    if (input.yes && input.speak && hooks) {
      const { writeSetting } = await import("../../config/write.ts")
      writeSetting(dex.home.config, "proactive.mode", "speak")
    }
    const only_read = input.agents.length > 0 ? [] : await unconnectedAgents(dex, report.agents)
    return { ...report, only_read: only_read.length > 0 ? only_read : undefined }
  },
  found: (output) =>
    output.servers === undefined
      ? !output.asked && output.agents.some(({ found }) => found) && !output.files.some(({ problem }) => problem)
      : output.servers.length > 0 &&
        output.servers.every(({ works }) => works) &&
        output.agents.every(({ problems }) => !problems?.length),
})

export const uninstall = defineTool({
  name: "uninstall",
  summary: "Remove dex from your coding agents' settings",
  input: object({
    agents: withDefault(listOf(text(), "As for install; all that are connected if omitted."), []),
    data: optional(flag("Also delete dex's own folder with the history, notes and settings. This cannot be undone.")),
    yes: optional(flag("Do not ask.")),
  }),
  output: wiring,
  cli: { group: "Agents", positional: "agents", short: { y: "yes" }, example: "dex uninstall" },
  run: async (dex: Dex, input) => {
    if (input.data && input.agents.length > 0)
      throw new DexError("usage", "--data deletes everything, so it takes no agents: dex uninstall --data")
    const { unwireAgents } = await import("../../integrations/wiring.ts")
    const entries = input.data ? await ownEntries(dex) : undefined
    const report = unwireAgents(contextOf(dex), input.agents, input.yes === true)
    if (!entries) return report
    // An agent that still starts dex would begin a new history.
    const mayDelete = input.yes === true && !report.launcher_kept && !report.files.some(({ problem }) => problem)
    return { ...report, asked: input.yes !== true, data: deleteEntries(dex.home.dir, entries, mayDelete) }
  },
  found: (output) =>
    !output.asked &&
    (output.files.length > 0 || output.data?.deleted === true) &&
    output.data?.deleted !== false &&
    !output.files.some(({ problem }) => problem),
})

/** The files and folders that dex writes into its own folder. What a person put there, such as recipes and agents of their own, does not match. */
const OWN_ENTRY =
  /^(?:(?:history|suggest|hub|pushed|index|knowledge|spending)(?:-\d+)?\.db[\w.-]*|(?:sync|embed|hub|knowledge|watch)\.lock|(?:config|places|picker|projects|limits|usage-line|view|watch|watch-service|integrations|hub)\.json|http-token|(?:hook|watch|sync|background)\.log|traces|late|agent-offered|listings|notes|chat-sessions|collections|damaged|embed-local|model-offered|map|tmp|bin|view|backups|forgetting)$/

/** The entries of dex's folder that may be deleted. Throws if a process of dex uses it. */
async function ownEntries({ home, machine }: Dex): Promise<string[]> {
  if (isSamePath(home.dir, machine.home) || pathBelow(home.dir, machine.home) !== undefined)
    throw new DexError("unsafe", `${home.dir} contains your home folder, so dex deletes nothing there.`)
  let entries: string[]
  try {
    entries = readdirSync(home.dir)
  } catch {
    throw new DexError("no_data", `There is nothing to delete: ${home.dir} cannot be read.`)
  }
  if (entries.includes("watch-service.json"))
    throw new DexError("in_use", "`dex watch` still runs as a service. First: dex watch --uninstall")
  const { tryLock } = await import("../../store/sqlite/lock.ts")
  const lock = tryLock(home.lock)
  if (!lock) throw new DexError("in_use", "Another dex process is reading. Try again when it is done.")
  lock.release()
  return entries.filter((name) => OWN_ENTRY.test(name))
}

function deleteEntries(folder: string, entries: readonly string[], mayDelete: boolean) {
  const bytes = entries.reduce((sum, name) => sum + bytesOf(join(folder, name)), 0)
  if (mayDelete) for (const name of entries) rmSync(join(folder, name), { recursive: true, force: true })
  const stays = readdirSync(folder).filter((name) => !entries.includes(name))
  if (mayDelete && stays.length === 0) rmdirSync(folder)
  return { folder, bytes, deleted: mayDelete, stays }
}

/** The size of a file, or of all files in a folder. Links are not followed. `bin` is gone once the agents are not connected. */
function bytesOf(path: string): number {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return stat?.size ?? 0
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0)
}

/** The names of agents whose conversations dex has, but which it cannot connect to, or whose settings are not on this machine. */
async function unconnectedAgents(dex: Dex, listed: { agent: string; found: boolean }[]): Promise<string[]> {
  if (!dex.hasHistory()) return []
  const storedSources = (await (await dex.store()).sourceReport()).filter(({ conversations }) => conversations > 0)
  const isConnected = (source: string) => listed.some(({ agent, found }) => agent === source && found)
  return agents
    .filter(({ source, connector }) => connector !== undefined && !isDexSource(source) && !isConnected(source))
    .filter(({ source }) => storedSources.some((stored) => stored.source === source))
    .map(({ name }) => name)
}

function contextOf(dex: Dex) {
  return {
    machine: dex.machine,
    dexHome: dex.home.dir,
    program: { node: process.execPath, script: realpathSync(process.argv[1]!) },
    now: dex.now(),
  }
}
