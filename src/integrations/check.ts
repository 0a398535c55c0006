import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import type { Machine } from "../agents/kit/connector.ts"
import type { WantedFile } from "../agents/kit/wiring.ts"
import type { SourceId } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import { isInstalled, loadWirings, resolveAgents } from "./agents.ts"
import { EditProblem } from "./edit.ts"
import { readEditable } from "./files.ts"
import { binOf } from "./launcher.ts"
import { additionName, hasAddition } from "./plan.ts"
import { type FileAdditions, readRecord, usersOf } from "./record.ts"
import { recordFile, type WiringContext } from "./wiring.ts"

type WiringCheck = {
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

/**
 * Checks which agents are connected, whether their files still have dex's entries, and whether each command in them starts and
 * answers.
 */
export async function checkWiring(
  { dexHome, machine, program }: Pick<WiringContext, "dexHome" | "machine" | "program">,
  names: readonly string[],
): Promise<WiringCheck> {
  const namedAgents = resolveAgents(names)
  const record = Object.entries(readRecord(recordFile(dexHome)))
  const selected = (await loadWirings()).filter(({ agent }) => namedAgents.length === 0 || namedAgents.includes(agent))
  const bin = binOf(dexHome, machine, program.node)
  const commands = new Map<string, SourceId[]>()
  const checkedAgents = selected.map((wiring) => {
    const { agent, title } = wiring
    const files = record.filter(([, added]) => usersOf(added).includes(agent))
    for (const command of new Set(files.flatMap(([, added]) => commandsOf(added))))
      commands.set(command, [...(commands.get(command) ?? []), agent])
    return {
      agent,
      title,
      found: isInstalled(wiring, machine),
      wired: files.length > 0,
      problems: files.flatMap(([path, added]) => problemsOf(path, added)),
      ...(files.length > 0 && subagentState(wiring.files(machine, bin))),
    }
  })
  const env = minimalEnvironment(machine)
  const servers = await Promise.all(
    [...commands].map(async ([key, users]) => {
      const command = JSON.parse(key) as string[]
      return { command, agents: users, ...(await probeServer(command, env)) }
    }),
  )
  return { agents: checkedAgents, servers }
}

/** The minimal environment of an agent that was started from a desktop. On Windows, that is the complete environment. */
function minimalEnvironment({ home, env, platform }: Machine): Record<string, string> {
  if (platform !== "win32") return { HOME: home, PATH: "/usr/bin:/bin" }
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function subagentState(files: WantedFile[]): Pick<WiringCheck["agents"][number], "subagent"> {
  const file = files.find(({ role }) => role === "subagent")
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

function problemsOf(path: string, { additions }: FileAdditions): string[] {
  try {
    const text = readEditable(path)
    if (text === undefined) return [`${path} is gone.`]
    const missing = additions.filter((addition) => !hasAddition(text, addition))
    return missing.map((addition) =>
      addition.type === "file"
        ? `${path} was changed since dex wrote it.`
        : `${path} no longer contains ${additionName(addition)} as dex wrote it.`,
    )
  } catch (error) {
    if (error instanceof EditProblem) return [`${path} ${error.message}.`]
    throw error
  }
}

/** The commands as JSON, so that equal commands can be recognised and are started only once. */
function commandsOf({ additions }: FileAdditions): string[] {
  return additions.flatMap((addition) => {
    const entry =
      addition.type === "property" ? addition.value : addition.type === "table" ? addition.values : undefined
    const { command, args } = (entry ?? {}) as { command?: string | string[]; args?: string[] }
    return command === undefined ? [] : [JSON.stringify([command, args ?? []].flat())]
  })
}

type ServerProbe = { works: boolean; message: string; tools?: number }

const ANSWER_TIMEOUT_MS = 15_000
const EXIT_TIMEOUT_MS = 3_000

/** Starts a registered server and initializes it as an agent would. Never throws, and leaves no process running. */
export function probeServer(command: readonly string[], env: Record<string, string>): Promise<ServerProbe> {
  const [program, ...args] = command
  return new Promise((resolve) => {
    const child = spawn(program!, args, { env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true })
    let errors = ""
    let serverName: string | undefined
    let isDone = false
    const answer = (result: ServerProbe) => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      child.stdin.end()
      const killTimer = setTimeout(() => child.kill("SIGKILL"), EXIT_TIMEOUT_MS)
      const finish = () => {
        clearTimeout(killTimer)
        resolve(result)
      }
      if (child.exitCode !== null || child.pid === undefined) finish()
      else child.once("exit", finish)
    }
    const timer = setTimeout(
      () =>
        answer({
          works: false,
          message: `The server did not answer within ${ANSWER_TIMEOUT_MS / 1000} s.${lastErrorLine(errors)}`,
        }),
      ANSWER_TIMEOUT_MS,
    )
    const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
    child.stdin.on("error", () => {}) // the server has ended; the handler of its exit reports that
    child.stderr.on("data", (data) => {
      errors = (errors + String(data)).slice(-2000)
    })
    child.once("error", (error) =>
      answer({ works: false, message: `The server could not be started (${messageOf(error)}).` }),
    )
    child.once("close", (code, signal) =>
      answer({
        works: false,
        message: `The server ended with ${signal ?? code} before it answered.${lastErrorLine(errors)}`,
      }),
    )
    createInterface({ input: child.stdout }).on("line", (line) => {
      const reply = readReply(line)
      if (reply === undefined)
        return answer({ works: false, message: "The server printed something that is not JSON-RPC." })
      if (reply.id === 1) {
        if (reply.error !== undefined)
          return answer({ works: false, message: `The server refused the request: ${reply.error}` })
        serverName = reply.server ?? "The server"
        send({ method: "notifications/initialized" })
        send({ id: 2, method: "tools/list" })
      }
      if (reply.id === 2 && serverName !== undefined)
        answer({ works: true, message: `${serverName} answers.`, tools: reply.tools })
    })
    send({
      id: 1,
      method: "initialize",
      params: {
        protocolVersion: "2025-06-18",
        capabilities: {},
        clientInfo: { name: "dex-install-check", version: "1" },
      },
    })
  })
}

type Reply = { id: unknown; error?: string; server?: string; tools: number }

function readReply(line: string): Reply | undefined {
  try {
    const { id, result, error } = JSON.parse(line) as { [field: string]: never } & {
      id?: unknown
      result?: { serverInfo?: { name?: unknown; version?: unknown }; tools?: unknown }
      error?: { message?: unknown }
    }
    const info = result?.serverInfo
    return {
      id,
      tools: Array.isArray(result?.tools) ? result.tools.length : 0,
      server: info && `${String(info.name)} ${String(info.version)}`,
      error: error && String(error.message),
    }
  } catch {
    return undefined
  }
}

function lastErrorLine(errors: string): string {
  const lastLine = errors.trim().split("\n").at(-1)
  return lastLine ? ` It printed: ${lastLine}` : ""
}
