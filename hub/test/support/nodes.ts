import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { hubEnv, request, startHub, type TestHub } from "./server.ts"
import type { Team } from "./team.ts"

const MAIN = join(import.meta.dirname, "../../src/main.ts")

/** The settings of a node that others can reach, which stay the same after a restart. */
export async function nodeEnv(team: Team, name: string): Promise<Record<string, string>> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  return hubEnv(team, { DEX_HUB_NODE: name, DEX_HUB_NODE_URL: url, DEX_HUB_PORT: String(port) })
}

export async function startNode(team: Team, name: string): Promise<TestHub & { env: Record<string, string> }> {
  const env = await nodeEnv(team, name)
  return { ...(await startHub(env)), env }
}

export type FoundByNode = {
  results: { id: string }[]
  total: number
  shards?: { searched: number; of: number }
  notes: string[]
}

/** The answer to a search. Throws if it is an error. */
export async function searchAt({ url }: { url: string }, token: string, input: object): Promise<FoundByNode> {
  const { status, body } = await request(url, token, "POST", "/v1/tools/search", input)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return body as FoundByNode
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

/** Runs `dex-hub` with a node's settings. Throws if it ends with another code. */
export async function asOperator(env: Record<string, string>, args: string[], code = 0): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...args], { env })
  const ended = once(child, "exit")
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [was] = await ended
  if (was !== code) throw new Error(`${args.join(" ")} ended with ${was}: ${stdout}${stderr}`)
  return stdout + stderr
}
