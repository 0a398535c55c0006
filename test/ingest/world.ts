import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import type { Connector } from "../../src/agents/kit/connector.ts"
import { INDEX_FILE, SPENDING_FILE } from "../../src/core/formats.ts"
import { followSpending } from "../../src/ingest/follow-spending.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import type { SyncReport } from "../../src/ingest/sync-types.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { openIndex, type SearchIndex } from "../../src/store/index/search-index.ts"
import { openSpending, type SpendingFile } from "../../src/store/spending/spending-file.ts"
import type { KnownSpending } from "../../src/store/spending/spent.ts"

/** The events that can happen between two syncs. Numbers are taken modulo what exists. */
export type Step =
  /** All of a file, or only its beginning, replaces another file of the same session. */
  | { do: "copy"; file: number; lines: number }
  /** From now on the agent works in another folder; 0 is dex's own. */
  | { do: "cd"; file: number; folder: number }
  | { do: "forget"; session: number }
  /** A prompt in the log that all conversations share. */
  | { do: "log"; session: number }
  | { do: "trim"; lines: number }
  /** The second root is inaccessible until the next sync. */
  | { do: "block" }
  /** The next sync dies of this file: a thread that runs out of memory, or a disk that does not answer. */
  | { do: "die"; file: number }
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

/** An empty history and index in `dir`. Creating their tables takes longer than most syncs here, so they are copied. */
function openEmpty(dir: string): { store: HistoryWriter; index: SearchIndex } {
  mkdirSync(dir, { recursive: true })
  if (template === undefined) {
    template = mkdtempSync(join(tmpdir(), "dex-template-"))
    openStore(join(template, "history.db")).close()
    openIndex(join(template, INDEX_FILE)).close()
  }
  for (const file of ["history.db", INDEX_FILE]) copyFileSync(join(template, file), join(dir, file))
  return { store: openStore(join(dir, "history.db")), index: openIndex(join(dir, INDEX_FILE)) }
}

let template: string | undefined

/** Sessions 0 and 1 have two files each: one in a second root under the same name, one in another folder. */
const SESSION_OF = [0, 1, 2, 0, 1]
/** Only the log of prompts has these. */
const LOGGED = [5, 6, 7]
const FOLDERS = 3

const idOf = (session: number) => `0000000${session}-0000-4000-8000-000000000000`

/** A home with a few Claude Code transcripts that grow, break and are rewritten, and a dex that reads them in steps. */
export class World {
  readonly home: string
  /** Forgotten sessions: nothing of them may ever be read again. */
  readonly forgotten = new Set<string>()
  /** Sessions with a deleted file: its content is kept, but reading at once cannot know it. */
  readonly deleted = new Set<string>()
  readonly #files: string[]
  readonly #log: string
  readonly #folder = new Map<number, number>()
  readonly #dies = new Set<string>()
  /** The session of each marker. */
  readonly #markerSessions = new Map<number, string>()
  readonly #torn = new Map<number, string>()
  #next = 0
  #store: HistoryWriter
  #index: SearchIndex

  constructor(dir: string) {
    this.home = dir
    const projects = (root: string, project: string) => join(dir, root, "projects", project)
    const folders = [
      ...[0, 1, 2].map(() => projects(".claude", "-code-api")),
      projects(".config/claude", "-code-api"),
      projects(".claude", "-code-web"),
    ]
    this.#files = folders.map((folder, file) => join(folder, `${idOf(SESSION_OF[file]!)}.jsonl`))
    this.#log = join(dir, ".claude", "history.jsonl")
    for (const folder of folders) mkdirSync(folder, { recursive: true })
    const empty = openEmpty(join(dir, ".dex"))
    this.#store = empty.store
    this.#index = empty.index
  }

  get store(): HistoryWriter {
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
    if (step.do === "forget") return this.#forget(step.session)
    if (step.do === "log") return appendFileSync(this.#log, this.#prompt(LOGGED[step.session % LOGGED.length]!))
    if (step.do === "trim") return this.#trim(step.lines)
    if (step.do === "block") return this.block()
    const path = this.#files[step.file % this.#files.length]!
    if (this.#blocked && path.startsWith(join(this.home, ".config"))) return
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
        if (exists) this.deleted.add(this.#sessionOf(step.file))
        rmSync(path, { force: true })
        this.#torn.delete(step.file)
        break
      case "copy": {
        const twin = SESSION_OF.findIndex((session, i) => session === SESSION_OF[step.file % 5] && i !== step.file % 5)
        const from = this.#files[twin]
        if (from === undefined || !existsSync(from)) break
        const lines = readFileSync(from, "utf8").split("\n")
        writeFileSync(
          path,
          step.lines === 0
            ? lines.join("\n")
            : lines
                .slice(0, step.lines)
                .map((line) => `${line}\n`)
                .join(""),
        )
        break
      }
      case "cd":
        this.#folder.set(step.file % this.#files.length, step.folder % FOLDERS)
        break
      case "die":
        this.#dies.add(path)
        break
      case "age":
        if (exists) {
          const at = Date.now() / 1000 - step.hours * 3600
          utimesSync(path, at, at)
        }
    }
  }

  async sync(options: { deadline?: number } = {}): Promise<SyncReport> {
    const report = await syncHistory(this.#deps(this.#store, this.#index, this.home), options)
    this.#dies.clear()
    this.unblock()
    return report
  }

  #blocked = false

  /** Replaces the second root's folder with a link to itself, so that every access fails. */
  block(): void {
    if (this.#blocked) return
    this.#blocked = true
    const projects = join(this.home, ".config", "claude", "projects")
    renameSync(projects, `${projects}.away`)
    symlinkSync(projects, projects)
  }

  unblock(): void {
    if (!this.#blocked) return
    this.#blocked = false
    const projects = join(this.home, ".config", "claude", "projects")
    rmSync(projects)
    renameSync(`${projects}.away`, projects)
  }

  async #forget(session: number): Promise<void> {
    const all = [0, 1, 2, ...LOGGED]
    const ref = { source: "claude_code" as const, id: idOf(all[session % all.length]!) }
    if (!(await this.#store.conversation(ref))) return
    await this.#store.forget(await this.#store.family([ref]), (_, key) => claudeCodeConnector.conversationOf!(key))
    this.forgotten.add(ref.id)
  }

  #trim(lines: number): void {
    if (!existsSync(this.#log)) return
    const kept = readFileSync(this.#log, "utf8").split("\n").slice(lines)
    writeFileSync(this.#log, kept.join("\n"))
  }

  /** True if a marker belongs to a forgotten session. */
  isForgotten(marker: string): boolean {
    return this.forgotten.has(this.#markerSessions.get(Number(marker.replace(/\D+/, ""))) ?? "")
  }

  #prompt(session: number): string {
    const n = this.#next++
    this.#markerSessions.set(n, idOf(session))
    const record = {
      display: `prompt${n} logged`,
      pastedContents: {},
      timestamp: 1_790_000_000_000 + n * 1000,
      project: "/code/api",
      sessionId: idOf(session),
    }
    return `${JSON.stringify(record)}\n`
  }

  /** A sync that is stopped after its first conversation, in a process that then ends. */
  async stopEarly(): Promise<void> {
    await this.sync({ deadline: 0 })
    this.close()
    this.#store = openStore(join(this.home, ".dex", "history.db"))
    this.#index = openIndex(join(this.home, ".dex", INDEX_FILE))
  }

  /** The recorded spending, by conversation. */
  async spent(): Promise<Record<string, unknown[]>> {
    return spentIn(openSpending(join(this.home, ".dex", SPENDING_FILE)))
  }

  /** The same, counted again from the entire history. */
  async spentAnew(): Promise<Record<string, unknown[]>> {
    const path = join(this.home, "counted.db")
    for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true })
    const file = openSpending(path)
    await followSpending(this.#store, file)
    return spentIn(file)
  }

  /** The same sources read at once into an empty history. */
  async rebuilt(dir: string): Promise<{ store: HistoryWriter; index: SearchIndex }> {
    const { store, index } = openEmpty(dir)
    await syncHistory({
      ...this.#deps(store, index, this.home),
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "lock") },
    })
    return { store, index }
  }

  /** Claude Code's connector, except for the files that the next sync cannot read. */
  readonly #connector: Connector = {
    ...claudeCodeConnector,
    read: (unit, after) => {
      if (this.#dies.has(unit.path)) throw new Error("the reading thread ended")
      return claudeCodeConnector.read(unit, after)
    },
  }

  #deps(store: HistoryWriter, index: SearchIndex, home: string) {
    const dir = join(home, ".dex")
    return {
      store,
      index,
      connectors: [this.#connector],
      machine: { home, env: {}, platform: "linux" as const },
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "sync.lock") },
    }
  }

  /** Each record has unique text, so that a lost or duplicated one is noticed. */
  #record(file: number): string {
    const n = this.#next++
    this.#markerSessions.set(n, this.#sessionOf(file))
    const folder = this.#folder.get(file % this.#files.length) ?? 1
    const uuid = `${String(n).padStart(8, "0")}-aaaa-4aaa-8aaa-aaaaaaaaaaaa`
    const common = {
      uuid,
      parentUuid: null,
      sessionId: this.#sessionOf(file),
      timestamp: new Date(1_790_000_000_000 + n * 1000).toISOString(),
      cwd: [join(this.home, ".dex"), "/code/api", "/code/web"][folder],
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
    return idOf(SESSION_OF[file % this.#files.length]!)
  }
}

/** By conversation. Closes the file. */
function spentIn(file: SpendingFile): Record<string, unknown[]> {
  const rows = Map.groupBy(file.spentBetween(0, Number.MAX_SAFE_INTEGER), ({ conversation }) => conversation)
  const all = file.spenders().map(({ id, native_id, ...spender }) => {
    const spent = (rows.get(id) ?? []).map(
      ({ conversation: _, by_id: __, ...row }: KnownSpending & { by_id?: number }) => row,
    )
    return [native_id, [spender, ...spent]]
  })
  file.close()
  return Object.fromEntries(all)
}

/** Everything that can be read of a history: conversations by id, with their live messages in order. */
export async function liveContent(
  store: HistoryWriter,
): Promise<Record<string, { facts: object; messages: object[] }>> {
  const content: Record<string, { facts: object; messages: object[] }> = {}
  for (const row of (await store.list({ limit: 1000, offset: 0 })).rows) {
    if (row.archived) continue
    const messages = (await store.messages(row.ref)).filter((message) => !message.superseded)
    if (messages.length === 0) continue
    const { ref, kind, title, started_at, ended_at, models, usage, message_count, cwds } = row
    content[ref.id] = {
      facts: { kind, title, started_at, ended_at, models, usage, message_count, cwds },
      messages: messages.map(({ number: _, copied: __, ...message }) => message),
    }
  }
  return content
}

/** Every marker in the history, including those of superseded messages. */
export async function allMarkers(store: HistoryWriter): Promise<Set<string>> {
  const markers = new Set<string>()
  for (const row of (await store.list({ limit: 1000, offset: 0 })).rows) {
    for (const message of await store.messages(row.ref)) {
      for (const part of message.parts)
        for (const [marker] of part.text.matchAll(/(?:prompt|answer)\d+/g)) markers.add(marker)
    }
  }
  return markers
}
