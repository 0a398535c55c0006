import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { claudeCode } from "../../src/connectors/claude-code.ts"
import { type SyncReport, sync } from "../../src/ingest/sync.ts"
import { openIndex, type SearchIndex } from "../../src/store/search-index.ts"
import { openStore } from "../../src/store/sqlite-store.ts"
import type { Store } from "../../src/store/store.ts"

/** What can happen to a transcript between two syncs. Numbers are taken modulo what there is. */
export type Step =
  | { do: "append"; file: number; count: number }
  | { do: "tear"; file: number; at: number }
  | { do: "finish"; file: number }
  | { do: "splice"; file: number; at: number }
  | { do: "join"; file: number }
  | { do: "nul"; file: number; length: number }
  | { do: "again"; file: number; count: number }
  | { do: "truncate"; file: number; at: number }
  | { do: "rotate"; file: number; count: number }
  | { do: "drop"; file: number; line: number }
  | { do: "delete"; file: number }
  | { do: "age"; file: number; hours: number }
  | { do: "stop" }
  | { do: "sync" }

/** An empty history and index in `dir`. Making their tables takes longer than most syncs here, so they are copied. */
function openEmpty(dir: string): { store: Store; index: SearchIndex } {
  mkdirSync(dir, { recursive: true })
  if (template === undefined) {
    template = mkdtempSync(join(tmpdir(), "dex-template-"))
    openStore(join(template, "history.db")).close()
    openIndex(join(template, "index.db")).close()
  }
  for (const file of ["history.db", "index.db"]) copyFileSync(join(template, file), join(dir, file))
  return { store: openStore(join(dir, "history.db")), index: openIndex(join(dir, "index.db")) }
}

let template: string | undefined

/** A home with a few Claude Code transcripts that grow, break and are rewritten, and a dex that reads them bit by bit. */
export class World {
  readonly home: string
  readonly #files: string[]
  readonly #torn = new Map<number, string>()
  #next = 0
  #store: Store
  #index: SearchIndex

  constructor(dir: string) {
    this.home = dir
    this.#files = [0, 1, 2].map((i) =>
      join(dir, ".claude", "projects", "-code-api", `0000000${i}-0000-4000-8000-000000000000.jsonl`),
    )
    mkdirSync(dirname(this.#files[0]!), { recursive: true })
    const empty = openEmpty(join(dir, ".dex"))
    this.#store = empty.store
    this.#index = empty.index
  }

  get store(): Store {
    return this.#store
  }

  get index(): SearchIndex {
    return this.#index
  }

  close(): void {
    this.#store.close()
    this.#index.close()
  }

  async take(step: Step): Promise<void> {
    if (step.do === "sync") return void (await this.sync())
    if (step.do === "stop") return void (await this.stopEarly())
    const path = this.#files[step.file % this.#files.length]!
    const exists = existsSync(path)
    const content = exists ? readFileSync(path) : Buffer.alloc(0)
    switch (step.do) {
      case "append":
        for (let i = 0; i < step.count; i++) appendFileSync(path, `${this.#record(step.file)}\n`)
        break
      case "tear": {
        const record = this.#record(step.file)
        const cut = 1 + (step.at % (record.length - 1))
        appendFileSync(path, record.slice(0, cut))
        this.#torn.set(step.file, record.slice(cut))
        break
      }
      case "finish": {
        const rest = this.#torn.get(step.file)
        if (rest !== undefined && exists) appendFileSync(path, `${rest}\n`)
        this.#torn.delete(step.file)
        break
      }
      case "splice": {
        const half = this.#record(step.file)
        appendFileSync(path, `${half.slice(0, 1 + (step.at % (half.length - 1)))}${this.#record(step.file)}\n`)
        break
      }
      case "join":
        appendFileSync(path, `${this.#record(step.file)}${this.#record(step.file)}\n`)
        break
      case "nul":
        appendFileSync(path, `${"\0".repeat(1 + step.length)}${this.#record(step.file)}\n`)
        break
      case "again": {
        const lines = content.toString("utf8").split("\n").slice(0, -1)
        if (lines.length > 0) appendFileSync(path, `${lines.slice(-1 - step.count).join("\n")}\n`)
        break
      }
      case "truncate":
        if (exists) writeFileSync(path, content.subarray(0, content.length === 0 ? 0 : step.at % content.length))
        break
      case "rotate": {
        const fresh = `${path}.new`
        writeFileSync(fresh, Array.from({ length: step.count }, () => `${this.#record(step.file)}\n`).join(""))
        renameSync(fresh, path)
        break
      }
      case "drop": {
        const lines = content.toString("utf8").split("\n")
        if (lines.length > 1) lines.splice(step.line % (lines.length - 1), 1)
        if (exists) writeFileSync(path, lines.join("\n"))
        break
      }
      case "delete":
        rmSync(path, { force: true })
        this.#torn.delete(step.file)
        break
      case "age":
        if (exists) {
          const at = Date.now() / 1000 - step.hours * 3600
          utimesSync(path, at, at)
        }
    }
  }

  sync(options: { deadline?: number } = {}): Promise<SyncReport> {
    return sync(this.#deps(this.#store, this.#index, this.home), options)
  }

  /** A sync that is stopped after its first conversation, in a process that then ends. */
  async stopEarly(): Promise<void> {
    await this.sync({ deadline: 0 })
    this.close()
    this.#store = openStore(join(this.home, ".dex", "history.db"))
    this.#index = openIndex(join(this.home, ".dex", "index.db"))
  }

  /** The same sources read at once into an empty history. */
  async rebuilt(dir: string): Promise<{ store: Store; index: SearchIndex }> {
    const store = openStore(join(dir, "history.db"))
    const index = openIndex(join(dir, "index.db"))
    await sync({
      ...this.#deps(store, index, this.home),
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "lock") },
    })
    return { store, index }
  }

  #deps(store: Store, index: SearchIndex, home: string) {
    const dir = join(home, ".dex")
    return {
      store,
      index,
      connectors: [claudeCode],
      machine: { home, env: {}, platform: "linux" as const },
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "sync.lock") },
    }
  }

  /** Each record says something that no other says, so that a lost or doubled one shows. */
  #record(file: number): string {
    const n = this.#next++
    const uuid = `${String(n).padStart(8, "0")}-aaaa-4aaa-8aaa-aaaaaaaaaaaa`
    const common = {
      uuid,
      parentUuid: null,
      sessionId: this.#sessionOf(file),
      timestamp: new Date(1_790_000_000_000 + n * 1000).toISOString(),
      cwd: "/code/api",
      version: "2.1.197",
      isSidechain: false,
      userType: "external",
    }
    return n % 3 === 2
      ? JSON.stringify({
          ...common,
          type: "assistant",
          requestId: `req_${n}`,
          message: {
            id: `msg_${n}`,
            type: "message",
            role: "assistant",
            model: "m",
            content: [{ type: "text", text: `answer${n} {"a":1}` }],
            usage: { input_tokens: 1, output_tokens: 1 },
          },
        })
      : JSON.stringify({
          ...common,
          type: "user",
          message: { role: "user", content: `prompt${n} "quoted" é日本 \\ tail` },
        })
  }

  #sessionOf(file: number): string {
    return `0000000${file % this.#files.length}-0000-4000-8000-000000000000`
  }
}

/** All that can be read of a history: conversations in order of id, the words of their live messages in order. */
export async function liveContent(store: Store): Promise<Record<string, { facts: object; messages: object[] }>> {
  const told: Record<string, { facts: object; messages: object[] }> = {}
  for (const row of (await store.list({ limit: 1000, offset: 0 })).rows) {
    if (row.archived) continue
    const messages = (await store.messages(row.ref)).filter((message) => !message.superseded)
    if (messages.length === 0) continue
    const { ref, kind, title, started_at, ended_at, models, usage, message_count, cwds } = row
    told[ref.id] = {
      facts: { kind, title, started_at, ended_at, models, usage, message_count, cwds },
      messages: messages.map(({ number: _, copied: __, ...message }) => message),
    }
  }
  return told
}

/** Every word-like marker that the history holds, superseded messages included. */
export async function allMarkers(store: Store): Promise<Set<string>> {
  const markers = new Set<string>()
  for (const row of (await store.list({ limit: 1000, offset: 0 })).rows) {
    for (const message of await store.messages(row.ref)) {
      for (const part of message.parts)
        for (const [marker] of part.text.matchAll(/(?:prompt|answer)\d+/g)) markers.add(marker)
    }
  }
  return markers
}
