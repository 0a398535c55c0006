import { rmSync } from "node:fs"
import { join } from "node:path"
import type { Part } from "../../src/core/conversation.ts"
import { formatRef } from "../../src/core/ref.ts"
import type { ItemKind, Moment } from "../../src/core/suggestion.ts"
import { fixesIn } from "../../src/learn/fixes/fixes.ts"
import { learnConversation } from "../../src/learn/learn.ts"
import { fileNameOf, pathBelow } from "../../src/learn/paths.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../src/store/history/store.ts"
import { type Knowledge, openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import type { Session } from "../../src/suggest/finders/finder.ts"
import { candidatesFor } from "../../src/suggest/suggest.ts"

// Goes through conversations in chronological order. At each edit and each failed command it determines what would be suggested
// from what was known before the conversation began; then it checks whether the rest of the conversation used it.

/** What could have been suggested at a moment, and whether it would have been useful. */
export type Offer = {
  conversation: string
  /** The index of the moment in its conversation. */
  moment: number
  /** The message. */
  number: number
  event: Moment["event"]
  /** In the half on which nothing was fitted. */
  is_held: boolean
  kind: ItemKind
  key: string
  title: string
  features: Record<string, number>
  used: boolean
}

export type Replay = { offers: Offer[]; moments: { early: number; held: number }; conversations: number }

export type Told = {
  row: ConversationRow
  messages: StoredMessage[]
  subagents: { id: string; call_id?: string; messages: StoredMessage[] }[]
}

export async function replay(store: HistoryReader, dir: string): Promise<Replay> {
  const result: Replay = { offers: [], moments: { early: 0, held: 0 }, conversations: 0 }
  for await (const { one, knowledge, is_held } of inTime(store, join(dir, "replay-knowledge.db"))) {
    result.conversations++
    for (const { moment, session, number, at, event, order } of momentsOf(one)) {
      if (event !== "session_start") result.moments[is_held ? "held" : "early"]++
      for (const candidate of candidatesFor({ knowledge }, moment, session)) {
        const { kind, key, title, features, names } = candidate
        result.offers.push({
          conversation: one.row.ref.id,
          moment: order,
          number,
          event,
          is_held,
          kind,
          key,
          title,
          features,
          used: isUsed(one, number, at, names, kind === "fix" ? candidate.file : undefined),
        })
      }
    }
  }
  return result
}

/** Each conversation with what was known when it began: the conversations that had ended by then. */
export async function* inTime(
  store: HistoryReader,
  path: string,
): AsyncGenerator<{ one: Told; knowledge: Knowledge; is_held: boolean }> {
  const told = await conversations(store)
  const half = told[Math.floor(told.length / 2)]!.row.started_at ?? 0
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true })
  const knowledge = openKnowledge(path)
  const byEnd = told.toSorted((a, b) => (a.row.ended_at ?? 0) - (b.row.ended_at ?? 0))
  let learned = 0
  for (const one of told) {
    const start = one.row.started_at ?? 0
    for (; learned < byEnd.length && (byEnd[learned]!.row.ended_at ?? 0) <= start; learned++) {
      const { row, subagents } = byEnd[learned]!
      await learnConversation(store, knowledge, formatRef(row.ref), row.ref)
      for (const { id } of subagents) await learnConversation(store, knowledge, id, refOf(id))
    }
    yield { one, knowledge, is_held: start >= half }
  }
  knowledge.close()
  rmSync(path, { force: true })
}

function refOf(id: string) {
  const [source, native] = id.split(/:(.*)/s) as ["claude_code", string]
  return { source, id: native }
}

async function conversations(store: HistoryReader): Promise<Told[]> {
  const { rows } = await store.list({ limit: 100_000, offset: 0, kinds: ["person", "subagent", "automation"] })
  const subagents = Map.groupBy(
    rows.filter(({ kind }) => kind === "subagent"),
    ({ parent }) => parent?.id,
  )
  const told: Told[] = []
  for (const row of rows) {
    if (row.kind === "subagent" || row.project === undefined) continue
    const own = []
    for (const sub of subagents.get(row.ref.id) ?? [])
      own.push({
        id: formatRef(sub.ref),
        ...(sub.parent?.call_id !== undefined && { call_id: sub.parent.call_id }),
        messages: await store.messages(sub.ref),
      })
    const messages = (await store.messages(row.ref)).filter(({ superseded, copied }) => !superseded && !copied)
    told.push({ row, messages, subagents: own })
  }
  return told.sort((a, b) => (a.row.started_at ?? 0) - (b.row.started_at ?? 0))
}

const saidBy = (origin: Part["origin"]) => (message: StoredMessage) =>
  message.parts.flatMap((part) => (part.origin === origin && part.type !== "tool_call" ? [part.text] : []))
const calls = ({ parts }: StoredMessage) => parts.flatMap((part) => (part.type === "tool_call" ? [part.text] : []))
const results = ({ parts }: StoredMessage) => parts.flatMap((part) => (part.type === "tool_result" ? [part.text] : []))

type At = { moment: Moment; session: Session; number: number; at: number; event: Moment["event"]; order: number }

export function* momentsOf({ row, messages }: Told): Generator<At> {
  const project = row.project!
  const outputs = new Map(
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === "tool_result" && part.call_id !== undefined ? [[part.call_id, part.text] as const] : [],
      ),
    ),
  )
  const files: string[] = []
  const prompts: string[] = []
  const said: string[] = []
  const printed: string[] = []
  const [hasMentioned, hasListed] = [firstHolding(said), firstHolding(printed)]
  let order = 0
  yield {
    moment: {
      event: "session_start",
      project,
      source: row.ref.source,
      session: row.ref.id,
      at: row.started_at ?? 0,
      ...(row.git_branch !== undefined && { branch: row.git_branch }),
    } satisfies Moment,
    session: { files: [], prompt: "", hasMentioned: () => false, hasListed: () => false, seen: new Set<string>() },
    number: 0,
    at: 0,
    event: "session_start" as Moment["event"],
    order: -1,
  }
  for (const message of messages) {
    const { number, at = row.started_at ?? 0 } = message
    prompts.push(...saidBy("person")(message))
    said.push(...saidBy("person")(message), ...saidBy("agent")(message), ...calls(message))
    printed.push(...results(message))
    for (const effect of message.effects) {
      const path = effect.type === "file" ? pathBelow(project, effect.path) : undefined
      const isEdit = effect.type === "file" && effect.action === "edited" && path !== undefined
      const isFailure = effect.type === "command" && effect.failed === true
      if (isEdit || isFailure) {
        const event: Moment["event"] = isEdit ? "before_edit" : "failed_command"
        const error = isFailure ? ((effect.call_id && outputs.get(effect.call_id)) ?? effect.error) : undefined
        const moment: Moment = {
          event,
          project,
          source: row.ref.source,
          session: row.ref.id,
          at,
          ...(row.git_branch !== undefined && { branch: row.git_branch }),
          ...(isEdit && { file: path }),
          ...(isFailure && { command: effect.command }),
          ...(error !== undefined && { error }),
        }
        const session: Session = {
          files: [...files],
          prompt: prompts.join("\n").slice(0, 20_000),
          hasMentioned,
          hasListed,
          seen: new Set(),
        }
        yield { moment, session, number, at, event, order: order++ }
      }
      if (path !== undefined && effect.type === "file" && effect.action !== "mentioned") files.push(path)
    }
  }
}

/** Whether any of the texts so far contains a name; each text is searched once. */
function firstHolding(texts: string[]): (name: string) => boolean {
  const known = new Map<string, number>()
  return (name) => {
    const from = known.get(name) ?? 0
    if (from === -1) return true
    for (let i = from; i < texts.length; i++)
      if (texts[i]!.includes(name)) {
        known.set(name, -1)
        return true
      }
    known.set(name, texts.length)
    return false
  }
}

/**
 * True if a name that neither the person nor the agent had used is in a later tool call, of the conversation or of a subagent;
 * for a fix also if the failure is then repaired by editing the file that it names.
 */
function isUsed(one: Told, number: number, at: number, names: string[], fixed: string | undefined): boolean {
  const here = one.messages.findIndex((message) => message.number === number)
  const before = one.messages.slice(0, here + 1)
  const isNew = (name: string) =>
    !before.some((message) =>
      [...saidBy("person")(message), ...saidBy("agent")(message), ...calls(message)].some((text) =>
        text.includes(name),
      ),
    )
  const later = [
    ...one.messages.slice(here + 1),
    ...one.subagents.flatMap(({ messages }) => messages.filter((message) => (message.at ?? 0) > at)),
  ].flatMap(calls)
  if (names.some((name) => later.some((text) => text.includes(name)) && isNew(name))) return true
  if (fixed === undefined) return false
  const own = fixesIn(one.messages, one.subagents).find(({ failed_at }) => failed_at === number)
  return own?.edits.some(({ path }) => fileNameOf(path) === fileNameOf(fixed)) ?? false
}
