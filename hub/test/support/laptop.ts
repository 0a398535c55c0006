import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { Ref } from "../../../src/core/ref.ts"
import { chunksOf, pushDigest, unpackChunk, type WireHead, type WireMessage } from "../../../src/hub-client/wire.ts"
import { openStore } from "../../../src/store/history/sqlite-history.ts"
import type { ConversationRow, HistoryReader, HistoryWriter } from "../../../src/store/history/store.ts"
import { tempDir } from "../../../test/support/temp.ts"
import type { Viewer } from "../../src/store/connection.ts"
import { commitPush, planPush, storeChunk } from "../../src/store/push.ts"
import { factsOf, packJson } from "../../src/store/sealed.ts"
import type { Team } from "./team.ts"

/** A laptop's history whose conversations are sent to a hub unchanged: nothing masked, nothing left out. */
export function newLaptop(): HistoryWriter {
  const store = openStore(join(tempDir(), "history.db"))
  onTestFinished(() => store.close())
  return store
}

export function headOf(row: ConversationRow): WireHead {
  const { ref, private: _, project: __, cwds: ___, path: ____, archived: _____, ...head } = row
  return { source: ref.source, id: ref.id, ...head, redaction_version: 1 }
}

export async function wireMessages(store: HistoryReader, ref: Ref): Promise<WireMessage[]> {
  const versions = new Map((await store.versions(ref)).map(({ number, version }) => [number, version]))
  const { project = "/" } = (await store.conversation(ref))!
  return (await store.messages(ref)).map((message) => ({
    ...message,
    version: versions.get(message.number)!,
    effects: message.effects.map((effect) =>
      effect.type === "file" && effect.path.startsWith(`${project}/`)
        ? { ...effect, path: effect.path.slice(project.length + 1) }
        : effect,
    ),
  }))
}

/** Plans, sends what is missing, and commits, without a network. */
export async function pushOne(
  team: Team,
  viewer: Viewer,
  pushed: { project: string; head: WireHead; messages: WireMessage[]; visibility?: "private" | "project" | "org" },
): Promise<{ sent: number; seq?: number; rev?: number }> {
  const { project, head, messages, visibility = "project" } = pushed
  const chunks = [...chunksOf(messages)]
  const hashes = chunks.map(({ hash }) => hash)
  const digest = pushDigest(head, visibility, hashes)
  const [plan] = await planPush(team.db, viewer, {
    project,
    conversations: [{ source: head.source, id: head.id, digest, chunks: hashes }],
  })
  if (plan!.state !== "send") return { sent: 0 }
  for (const { hash, data } of chunks)
    if (plan!.chunks.includes(hash)) await storeChunk(team.db, viewer, head, { hash, data, ...packedFacts(data) })
  const commit = { project, digest, chunks: hashes, parent_rev: plan!.rev, visibility, head }
  return { sent: plan!.chunks.length, ...(await commitPush(team.db, viewer, commit)) }
}

/** The facts that are stored with a chunk. */
export function packedFacts(data: Buffer): { facts: Buffer; plainBytes: number } {
  const { messages, plainBytes } = unpackChunk(data)
  return { facts: packJson(factsOf(messages)), plainBytes }
}

export function headNamed(id: string, messages: WireMessage[], more: Partial<WireHead> = {}): WireHead {
  return {
    source: "claude_code",
    id,
    kind: "person",
    models: [],
    message_count: messages.length,
    superseded: false,
    copied_count: 0,
    estimated_tokens: 1,
    text_bytes: 1,
    redaction_version: 2,
    ...more,
  }
}

export function saying(number: number, text: string, more: Partial<WireMessage> = {}): WireMessage {
  const parts = [{ type: "text" as const, text, origin: "person" as const }]
  const flags = { abandoned: false, superseded: false, copied: false }
  return { number, version: 1, role: "user", parts, effects: [], ...flags, ...more }
}
