import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { text } from "node:stream/consumers"
import { expect, onTestFinished } from "vitest"
import { tempDir } from "../../../test/support/temp.ts"
import type { Viewer } from "../../src/store/connection.ts"
import { addToken, type Scope } from "../../src/store/people.ts"
import type { Team } from "./team.ts"

const MAIN = join(import.meta.dirname, "../../src/main.ts")

export type TestHub = { url: string; child: ChildProcess; log: string[]; kill(): Promise<void> }

/** The settings of a hub on this team's database, as an operator sets them. */
export function hubEnv(team: Team, more: Record<string, string> = {}): Record<string, string> {
  const key = join(tempDir(), "master.key")
  writeFileSync(key, team.masterKey.toString("hex"), { mode: 0o600 })
  return {
    PATH: process.env.PATH ?? "",
    NODE_COMPILE_CACHE: compiled(),
    DEX_HUB_DATABASE_URL: team.app,
    DEX_HUB_INDEX_URL: team.index,
    DEX_HUB_KEYS_URL: team.keys,
    DEX_HUB_ADMIN_URL: team.admin,
    DEX_HUB_MASTER_KEY_FILE: key,
    DEX_HUB_DATA: tempDir(),
    DEX_HUB_PORT: "0",
    DEX_HUB_DRAIN_SECONDS: "0",
    DEX_HUB_PUSHES_PER_MINUTE: "0",
    DEX_HUB_READS_PER_MINUTE: "0",
    DEX_HUB_CHUNK_SECONDS: "100", // on a busy machine it takes seconds to start what checks the first chunk
    ...more,
  }
}

/**
 * The folder in which Node keeps the hub's compiled sources: a hub that finds them starts in half the processor time. A hub that is
 * killed leaves none, so the first are made by a command that ends by itself.
 */
function compiled(): string {
  const folder = join(tmpdir(), "dex-hub-compiled")
  if (existsSync(folder)) return folder
  const env = { PATH: process.env.PATH ?? "", NODE_COMPILE_CACHE: folder }
  execFileSync(process.execPath, [MAIN, "help"], { env, stdio: "ignore" })
  return folder
}

/** Runs `dex-hub serve` as a process until the end of the test. */
export async function startHub(env: Record<string, string>, main = MAIN): Promise<TestHub> {
  const child = spawn(process.execPath, [main, "serve"], { env, stdio: ["ignore", "pipe", "inherit"] })
  onTestFinished(() => void child.kill("SIGKILL"))
  const log: string[] = []
  const url = await new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`dex-hub ended with ${code}: ${log.join("\n")}`)))
    createInterface({ input: child.stdout! }).on("line", (line) => {
      log.push(line)
      const { event, port } = JSON.parse(line) as { event?: string; port?: number }
      if (event === "listening") resolve(`http://127.0.0.1:${port}`)
    })
  })
  const kill = async () => {
    const ended = once(child, "exit")
    child.kill("SIGKILL")
    await ended
  }
  return { url, child, log, kill }
}

export async function tokenFor(team: Team, { tenant, member }: Viewer, scopes: Scope[] = ["push", "read"]) {
  return addToken(team.asOwner, { tenant, member, kind: "personal", scopes, name: "test" })
}

export async function request(
  url: string,
  token: string | undefined,
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<{ status: number; body: unknown; headers: Headers }> {
  const isBytes = body instanceof Uint8Array
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && !isBytes && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: isBytes ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
    ...(signal && { signal }),
  })
  const text = await response.text()
  const isJson = response.headers.get("content-type")?.includes("json")
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

/** Waits until a hub that was just started has built its index. */
export async function canSearch(url: string, token: string): Promise<void> {
  const status = async () => (await request(url, token, "POST", "/v1/tools/search", { query: "anything" })).status
  await expect.poll(status).toBe(200)
}

/** The settings of commands that need the owner's address, which `dex-hub serve` never gets. */
export function ownerEnv(team: Team, more: Record<string, string> = {}): Record<string, string> {
  return { ...hubEnv(team, more), DEX_HUB_OWNER_URL: team.owner }
}

/** Runs `dex-hub` with a hub's settings. Throws if it ends with another code. */
export async function asOperator(env: Record<string, string>, args: string[], code = 0): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...args], { env })
  const ended = once(child, "exit")
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [was] = await ended
  if (was !== code) throw new Error(`${args.join(" ")} ended with ${was}: ${stdout}${stderr}`)
  return stdout + stderr
}
