import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { loadConnectors } from "../../src/agents/connectors.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { PLAN_OPENING } from "../../src/core/plan.ts"
import { syncHistory } from "../../src/ingest/sync.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { Absent } from "../set.ts"
import { type Turn, turnsIn } from "./public-chats.ts"

// The labelled conversations as a user's history: samples in the folders of their agents, chats from public repositories as
// transcripts of Claude Code. The product reads, redacts and stores all of them.

const SHARED = process.env.DEX_SHARED_DIR ?? fileURLToPath(new URL("../../../shared/", import.meta.url))
/** Bare clones, `owner+name/repo`. */
const CLONES = process.env.DEX_CLONES_DIR ?? fileURLToPath(new URL("../../../.mirror/", import.meta.url))

export type Place = { repo?: string; commit?: string; file: string; conversation: string }

export type DecisionsHome = {
  store: HistoryReader
  /** The id of the labelled conversation in the history; undefined if dex cannot read its agent. */
  idOf(place: Place): string | undefined
  close(): void
}

export async function openDecisionsHome(places: Place[]): Promise<DecisionsHome> {
  const dir = join(tmpdir(), `dex-decisions-${process.pid}`)
  rmSync(dir, { recursive: true, force: true })
  if (places.some(({ repo }) => repo !== undefined) && !existsSync(CLONES)) throw new Absent(`${CLONES} is not there`)
  for (const place of places) {
    if (place.repo === undefined) layOutSample(dir, place)
    else writeChat(dir, place, turnsIn(textOf(place), place.conversation))
  }
  const home = join(dir, ".dex")
  const store = openStore(join(home, "history.db"))
  const index = openIndex(join(home, INDEX_FILE))
  await syncHistory({
    store,
    index,
    connectors: (await loadConnectors()).connectors,
    machine: { home: dir, platform: process.platform, env: {} },
    home: { dir: home, history: join(home, "history.db"), lock: join(home, "lock") },
  })
  index.close()
  const { rows } = await store.list({ limit: 100_000, offset: 0, kinds: ["person", "subagent", "automation"] })
  const ids = new Set(rows.map(({ ref }) => ref.id))
  return {
    store,
    idOf: (place) => {
      const id = place.repo === undefined ? place.conversation : idOf(place)
      return ids.has(id) ? id : undefined
    },
    close: () => {
      store.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** The agents' folders, for agents whose samples are one file each. */
const FOLDERS: [sample: RegExp, folder: string][] = [
  [/^samples\/pi\/|^real-sessions\/pi/, ".pi/agent/sessions/--sample--"],
  [/^samples\/claude-code\/.*\.jsonl$|^real-sessions\/claude-code.*\.jsonl$/, ".claude/projects/-sample"],
  [/^samples\/codex\/.*\.jsonl$|^real-sessions\/codex\/.*\.jsonl$/, ".codex/sessions/2026/01/01"],
  [/^samples\/gemini-cli\/.*\.json$/, ".gemini/tmp/sample/chats"],
]

/** Puts a sample where its agent keeps its sessions. */
export function layOutSample(home: string, { file, conversation }: Place): void {
  const [, folder] = FOLDERS.find(([sample]) => sample.test(file)) ?? []
  const from = join(SHARED, file)
  if (folder === undefined || !existsSync(from)) return
  const name = basename(file)
  const named =
    folder.startsWith(".codex") && !name.startsWith("rollout-")
      ? `rollout-2026-01-01T00-00-00-${conversation}.jsonl`
      : name
  const chat = folder.startsWith(".gemini") && !name.startsWith("session-") ? `session-${name}` : named
  settled(join(home, folder, chat), (to) => copyFileSync(from, to))
}

function textOf({ repo, commit, file }: Place): string {
  const clone = join(CLONES, repo!.replace("/", "+"), "repo")
  if (!existsSync(clone)) throw new Absent(`${clone} is not there`)
  return execFileSync("git", ["-C", clone, "show", `${commit}:${file}`], { encoding: "utf8", maxBuffer: 1 << 28 })
}

function idOf({ repo, file, conversation }: Place): string {
  const hex = createHash("sha256").update(`${repo} ${file} ${conversation}`).digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function writeChat(home: string, place: Place, turns: Turn[]): void {
  const sessionId = idOf(place)
  const common = { isSidechain: false, userType: "external", cwd: `/eval/${place.repo}`, sessionId, version: "2.1.0" }
  let parentUuid: string | null = null
  const records = turns.flatMap(recordsOf).map((record, i) => {
    const uuid = `${sessionId.slice(0, 24)}${String(i).padStart(12, "0")}`
    const one = {
      ...common,
      ...record,
      parentUuid,
      uuid,
      timestamp: new Date(Date.UTC(2026, 0, 1) + i * 20_000).toISOString(),
    }
    parentUuid = uuid
    return JSON.stringify(one)
  })
  settled(join(home, ".claude/projects/-eval", `${sessionId}.jsonl`), (to) =>
    writeFileSync(to, `${records.join("\n")}\n`),
  )
}

function recordsOf({ by, text, asked }: Turn, i: number): Record<string, unknown>[] {
  const said = { role: by === "person" ? "user" : "assistant" }
  if (by === "person") {
    // Claude Code marks a plan that a session starts with.
    const plan = text.startsWith(PLAN_OPENING) && { planContent: text.slice(PLAN_OPENING.length) }
    return [{ type: "user", ...plan, message: { ...said, content: text } }]
  }
  const spoken =
    text === "" ? [] : [{ type: "assistant", message: { ...said, id: `m${i}`, content: [{ type: "text", text }] } }]
  if (!asked) return spoken
  const id = `toolu_${i}`
  const questions = asked.map(({ question, options }) => ({ question, options: options.map((label) => ({ label })) }))
  const answers = asked.map(({ question, answer }) => `"${question}"="${answer}"`).join(", ")
  const call = { type: "tool_use", id, name: "AskUserQuestion", input: { questions } }
  const content = `User has answered your questions: ${answers}. You can now continue with the user's answers in mind.`
  return [
    ...spoken,
    { type: "assistant", message: { ...said, id: `m${i}q`, content: [call] } },
    { type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] } },
  ]
}

/** The last line of a file that was just written may be incomplete, and reading it would be delayed. */
function settled(path: string, write: (path: string) => void): void {
  mkdirSync(dirname(path), { recursive: true })
  write(path)
  const before = new Date(Date.UTC(2026, 0, 2))
  utimesSync(path, before, before)
}
