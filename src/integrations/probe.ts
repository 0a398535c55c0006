import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { messageOf } from "../core/error.ts"

export type ServerProbe = { works: boolean; message: string; tools?: number }

const PATIENCE_MS = 15_000
const GOODBYE_MS = 3_000

/** Really starts a registered server and greets it as an agent would. Never throws; leaves no process behind. */
export function probe(command: readonly string[], env: Record<string, string>): Promise<ServerProbe> {
  const [program, ...args] = command
  return new Promise((resolve) => {
    const child = spawn(program!, args, { env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true })
    let errors = ""
    let greeted: string | undefined
    let answered = false
    const answer = (result: ServerProbe) => {
      if (answered) return
      answered = true
      clearTimeout(patience)
      child.stdin.end()
      const goodbye = setTimeout(() => child.kill("SIGKILL"), GOODBYE_MS)
      const finish = () => {
        clearTimeout(goodbye)
        resolve(result)
      }
      if (child.exitCode !== null || child.pid === undefined) finish()
      else child.once("exit", finish)
    }
    const patience = setTimeout(
      () => answer({ works: false, message: `It did not answer within ${PATIENCE_MS / 1000} s.${saying(errors)}` }),
      PATIENCE_MS,
    )
    const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
    child.stdin.on("error", () => {}) // it ended first; its exit says so
    child.stderr.on("data", (data) => {
      errors = (errors + String(data)).slice(-2000)
    })
    child.once("error", (error) => answer({ works: false, message: `It could not be started (${messageOf(error)}).` }))
    child.once("close", (code, signal) =>
      answer({ works: false, message: `It ended with ${signal ?? code} before it answered.${saying(errors)}` }),
    )
    createInterface({ input: child.stdout }).on("line", (line) => {
      const reply = readReply(line)
      if (reply === undefined) return answer({ works: false, message: "It printed something that is not JSON-RPC." })
      if (reply.id === 1) {
        if (reply.error !== undefined) return answer({ works: false, message: `It refused: ${reply.error}` })
        greeted = reply.server ?? "A server"
        send({ method: "notifications/initialized" })
        send({ id: 2, method: "tools/list" })
      }
      if (reply.id === 2 && greeted !== undefined)
        answer({ works: true, message: `${greeted} answers.`, tools: reply.tools })
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
      ...(info && { server: `${String(info.name)} ${String(info.version)}` }),
      ...(error && { error: String(error.message) }),
    }
  } catch {
    return undefined
  }
}

function saying(errors: string): string {
  const last = errors.trim().split("\n").at(-1)
  return last ? ` It said: ${last}` : ""
}
