import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { loadConnectors } from "../src/agents/connectors.ts"
import { INDEX_FILE } from "../src/core/formats.ts"
import { syncHistory } from "../src/ingest/sync.ts"
import { openStore } from "../src/store/history/sqlite-history.ts"
import type { HistoryReader } from "../src/store/history/store.ts"
import { openIndex, type SearchIndex } from "../src/store/index/search-index.ts"
import type { Chat, EvalSet } from "./set.ts"

export const CACHE_DIR = process.env.DEX_EVAL_CACHE ?? join(tmpdir(), "dex-eval")

export type EvalHome = {
  /** The value of HOME. */
  dir: string
  store: HistoryReader
  index: SearchIndex
  /** The set's name for a message or conversation, from dex's. */
  docOf(conversation: string, number: number): string
  chatOf(conversation: string): string
  close(): void
}

/**
 * A set as a user's history: transcripts in their own home, read, redacted, stored and indexed by the product. It is reused until
 * the set or anything that reads and stores changes.
 */
export async function openHome(set: EvalSet): Promise<EvalHome> {
  const dir = join(CACHE_DIR, `${set.name}-${fingerprint(set).slice(0, 16)}`)
  const ready = join(dir, "ready")
  if (!existsSync(ready)) {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir, { recursive: true })
    if (Array.isArray(set.chats)) writeTranscripts(join(dir, ".claude"), set.chats)
    await build(dir, Array.isArray(set.chats) ? join(dir, ".claude") : set.chats.transcripts)
    writeFileSync(ready, "")
  }
  const store = openStore(join(dir, ".dex/history.db"))
  const index = openIndex(join(dir, `.dex/${INDEX_FILE}`))
  const names = Array.isArray(set.chats) ? namesOf(set.chats) : undefined
  return {
    dir,
    store,
    index,
    docOf: (conversation, number) => names?.get(conversation)?.docs[number - 1]?.id ?? `${conversation}#${number}`,
    chatOf: (conversation) => names?.get(conversation)?.id ?? conversation,
    close: () => {
      store.close()
      index.close()
    },
  }
}

function fingerprint(set: EvalSet): string {
  const hash = createHash("sha256")
  hash.update(JSON.stringify(Array.isArray(set.chats) ? set.chats : set.chats.transcripts))
  for (const folder of ["core", "agents", "redact", "git", "ingest", "store"]) {
    const path = fileURLToPath(new URL(`../src/${folder}/`, import.meta.url))
    for (const file of readdirSync(path, { recursive: true }).map(String).sort()) {
      if (statSync(path + file).isFile()) hash.update(file).update(readFileSync(path + file))
    }
  }
  return hash.digest("hex")
}

async function build(dir: string, claudeDir: string): Promise<void> {
  const home = join(dir, ".dex")
  const store = openStore(join(home, "history.db"))
  const index = openIndex(join(home, INDEX_FILE))
  const report = await syncHistory({
    store,
    index,
    connectors: (await loadConnectors()).connectors.filter((connector) => connector.source === "claude_code"),
    machine: { home: dir, platform: process.platform, env: { CLAUDE_CONFIG_DIR: claudeDir } },
    home: { dir: home, history: join(home, "history.db"), lock: join(home, "lock") },
  })
  store.close()
  index.close()
  if (!report.complete || report.unreadable.length > 0) throw new Error(`not all was read: ${JSON.stringify(report)}`)
}

/** Where and when a chat took place, by its place in the list. */
type Circumstances = { cwd: string; startedAt: number }

const FIRST_START = Date.UTC(2026, 0, 1)

export function writeTranscripts(
  claudeDir: string,
  chats: Chat[],
  circumstancesOf: (chat: Chat, index: number) => Circumstances = ({ project }, index) => ({
    cwd: projectPath(project),
    startedAt: FIRST_START + index * 3_600_000,
  }),
): void {
  for (const [c, chat] of chats.entries()) {
    const folder = join(claudeDir, "projects", `-eval-${chat.project}`)
    mkdirSync(folder, { recursive: true })
    const { cwd, startedAt } = circumstancesOf(chat, c)
    const sessionId = uuidOf(chat.id)
    let parentUuid: string | null = null
    const lines = chat.docs.map((doc, m) => {
      const uuid = uuidOf(`${chat.id} ${m} ${doc.id}`)
      const common = {
        parentUuid,
        isSidechain: false,
        userType: "external",
        cwd,
        sessionId,
        version: "2.1.0",
        uuid,
        timestamp: new Date(startedAt + m * 20_000).toISOString(),
      }
      parentUuid = uuid
      const record =
        doc.role === "assistant"
          ? {
              ...common,
              type: "assistant",
              message: { id: `msg_${uuid}`, role: "assistant", content: [{ type: "text", text: doc.text }] },
            }
          : { ...common, type: "user", message: { role: "user", content: doc.text } }
      return JSON.stringify(record)
    })
    const path = join(folder, `${sessionId}.jsonl`)
    writeFileSync(`${path}.part`, `${lines.join("\n")}\n`)
    renameSync(`${path}.part`, path)
  }
}

function namesOf(chats: Chat[]): Map<string, Chat> {
  return new Map(chats.map((chat) => [uuidOf(chat.id), chat]))
}

/** The id that a chat's conversation gets, and the uuid of anything else with a name. */
export function uuidOf(name: string): string {
  const hex = createHash("sha256").update(name).digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The ending ensures that no project's path is a prefix of another's. */
export function projectPath(project: string): string {
  return `/eval/${project}.project`
}
