import { join } from "node:path"
import { onTestFinished } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

export const A = { source: "claude_code" as const, id: "a" }

/** A history with rows in every table. */
export async function fullHistory(): Promise<{ path: string; store: HistoryWriter }> {
  const path = join(tempDir(), "history.db")
  const store = openStore(path)
  onTestFinished(() => store.close())
  await writeA(store)
  await writeB(store)
  await store.writeUnit(unit("gone", [conversation("gone", [textMessage("g1", "to be forgotten")])]))
  await store.forget([{ source: "claude_code", id: "gone" }])
  await store.saveContainer("cursor", "/home/dev/state.vscdb", "12-34")
  await store.saveProgress({ done: 2, total: 2, at: 1_760_000_000_000 })
  await store.saveUnreadable("codex", [{ path: "/x", reason: "no" }])
  await store.saveCollection({ name: "react", kind: "folder", origin: "/d", root: "/d", added_at: 5, problems: [] })
  await store.joinProject("/elsewhere/api", "/code/api", "you joined them")
  await store.seal(Date.now() + 60_000)
  return { path, store }
}

const EFFECTS = [
  { type: "file" as const, path: "/code/api/src/a.ts", action: "edited" as const, added: 3, removed: 1 },
  { type: "file" as const, path: "/code/api/src/a.ts", action: "edited" as const, added: 3 },
  { type: "command" as const, command: "npm test", exit_status: 1, failed: true },
  { type: "commit" as const, hash: "1a2b3c4", subject: "auth: one refresh at a time", branch: "main" },
]
const MESSAGES = [
  textMessage("k1", "one"),
  textMessage("k2", "two", { role: "assistant", effects: EFFECTS }),
  textMessage("k3", "three"),
]
const RAW = MESSAGES.map((message) => JSON.stringify(message))

/** Writes the unit with conversation "a". Calling it again replaces the unit. */
export async function writeA(store: HistoryWriter): Promise<void> {
  const a = conversation("a", MESSAGES, { title: { text: "A title", from: "person" } })
  await store.writeUnit(unit("a", [a], { raw: RAW, mode: "replace" }))
}

export async function writeB(store: HistoryWriter): Promise<void> {
  const b = conversation("b", [textMessage("b1", "x".repeat(200_000)), textMessage("b2", "y")])
  await store.writeUnit(unit("b", [b], { raw: RAW.slice(1), mode: "replace" }))
}

/** The answers to every query. */
export async function everything(store: HistoryWriter) {
  const refs = [A, { source: "claude_code" as const, id: "b" }]
  return {
    list: await store.list({ limit: 10, offset: 0 }),
    read: await Promise.all(
      refs.map(async (ref) => [
        await store.conversation(ref),
        await store.messages(ref),
        await store.filesOf(ref),
        await store.madeIn(ref),
        await store.commandsOf(ref),
        await store.rawLines("claude_code", ref.id, "live"),
      ]),
    ),
    work: await store.work(refs),
    stats: await store.stats(),
    projects: await store.projects(),
    collections: await store.collections(),
    sources: await store.sourceReport(),
    progress: await store.progress(),
    containers: [...(await store.knownContainers("cursor"))],
    forgotten: await store.forgotten(),
    id: await store.id(),
  }
}
