import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { openKeyring } from "../hub/src/store/keyring.ts"
import { migrate } from "../hub/src/store/migrate.ts"
import { asOwner } from "../hub/src/store/owner.ts"
import { addMember, addTenant, addToken } from "../hub/src/store/people.ts"
import { runAs, startPostgres } from "../hub/test/support/start-postgres.ts"
import type { Ref } from "../src/core/ref.ts"
import { type HubClient, openHub } from "../src/hub-client/client.ts"
import { chunksOf, pushDigest, type WireHead } from "../src/hub-client/wire.ts"
import { REDACTION_VERSION } from "../src/redact/version.ts"
import type { HistoryReader } from "../src/store/history/store.ts"

// A hub in its own process with its own PostgreSQL, and the code that pushes a history to it unchanged.

const SOURCES = join(import.meta.dirname, "../hub/src/main.ts")
/** The build that operators run: `npm run build --workspace hub` makes it. */
export const BUILT_HUB = join(import.meta.dirname, "../hub/dist/dex-hub.js")

export type StartedHub = {
  hub: HubClient
  address: string
  masterKey: Buffer
  owner: string
  data: string
  server: ChildProcess
  /** Starts another process in its place, once it has ended. */
  again(): Promise<{ child: ChildProcess; address: string }>
}

/**
 * One tenant with one member, ann, whose client is returned. `home`: a folder for its files; `more`: settings; `program`: what to
 * start.
 */
export async function startHub(
  home: string,
  more: Record<string, string> = {},
  program = SOURCES,
): Promise<StartedHub> {
  const { url } = await startPostgres(["jit=off"])
  await runAs(url("postgres", "postgres"), "create database hub")
  const owner = url("postgres", "hub")
  await migrate({ owner })
  const key = join(home, "master.key")
  const masterKey = randomBytes(32)
  writeFileSync(key, masterKey.toString("hex"), { mode: 0o600 })
  const token = await asOwner(owner, async (query) => {
    const tenant = await addTenant(query, openKeyring(masterKey), "bench")
    const member = await addMember(query, { tenant, name: "ann", role: "member" })
    return addToken(query, { tenant, member, kind: "personal", scopes: ["push", "read"], name: "bench" })
  })
  const data = join(home, "index")
  const start = () =>
    startServer(program, {
      ...process.env,
      DEX_HUB_DATABASE_URL: url("dex_hub_app", "hub"),
      DEX_HUB_INDEX_URL: url("dex_hub_index", "hub"),
      DEX_HUB_MASTER_KEY_FILE: key,
      DEX_HUB_DATA: data,
      DEX_HUB_PORT: "0",
      ...more,
    })
  const { child, address } = await start()
  return { hub: openHub({ address, token }), address, masterKey, owner, data, server: child, again: start }
}

async function startServer(
  program: string,
  settings: NodeJS.ProcessEnv,
): Promise<{ child: ChildProcess; address: string }> {
  const child = spawn(process.execPath, [program, "serve"], {
    env: settings,
    stdio: ["ignore", "pipe", "inherit"],
  })
  return new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { event, port, level } = JSON.parse(line) as { event?: string; port?: number; level?: string }
      if (level === "error") console.error(line)
      if (event === "listening") resolve({ child, address: `http://127.0.0.1:${port}` })
    })
  })
}

export type Outgoing = { project: string; head: WireHead; chunks: Chunk[] }
type Chunk = ReturnType<typeof chunksOf> extends Iterable<infer C> ? C : never

/** Unchanged from the history: what the client removes before sending is measured elsewhere. */
export async function outgoingConversation(history: HistoryReader, ref: Ref): Promise<Outgoing> {
  const row = (await history.conversation(ref))!
  const versions = new Map((await history.versions(ref)).map(({ number, version }) => [number, version]))
  const { private: _, cwds: __, path: ___, archived: ____, ref: _____, project = "none", ...told } = row
  const head = { source: ref.source, id: ref.id, ...told, redaction_version: REDACTION_VERSION }
  const messages = (await history.messages(ref)).map((message) => ({
    ...message,
    effects: message.effects.map((effect) => (effect.type === "file" ? inProject(effect, project) : effect)),
    parts: message.parts.map((part) =>
      part.type === "tool_result" && part.hunks
        ? { ...part, hunks: part.hunks.map((hunk) => inProject(hunk, project)) }
        : part,
    ),
    version: versions.get(message.number)!,
  }))
  return { project: project.replace(/^\//, ""), head, chunks: [...chunksOf(messages)] }
}

/** File names are relative to the project, as in the client. */
function inProject<T extends { path: string }>(file: T, project: string): T {
  return file.path.startsWith(`${project}/`) ? { ...file, path: file.path.slice(project.length + 1) } : file
}

export async function pushOne(hub: HubClient, { project, head, chunks }: Outgoing): Promise<void> {
  const hashes = chunks.map(({ hash }) => hash)
  const digest = pushDigest(head, "project", hashes)
  const { source, id } = head
  const [plan] = await hub.plan({ project, conversations: [{ source, id, digest, chunks: hashes }] })
  if (plan!.state !== "send") throw new Error(JSON.stringify(plan))
  for (const chunk of chunks) await hub.sendChunk(project, { source, id }, chunk)
  const commit = { project, digest, chunks: hashes, parent_rev: plan!.rev, visibility: "project" as const, head }
  await hub.commit(commit)
}

/** The peak memory in MB since the start. */
export function mostMemory({ pid }: ChildProcess): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1000
}
