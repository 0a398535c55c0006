import { DexError } from "../core/error.ts"
import { collectionOf, parseRef } from "../core/ref.ts"
import { isReachable } from "../search/scope.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { knownCollections } from "../tools/docs/collections.ts"
import { withSubsections } from "../tools/docs/sections.ts"
import { resolveRef } from "../tools/resolve.ts"
import { type AnswerScope, searchWithin } from "./answer-scope.ts"
import { answerCandidates, questionOf } from "./candidates.ts"
import { type Answering, chosen, rankStatements } from "./extract.ts"
import { createPassages, type Passage, type Passages } from "./passages.ts"

/** Searching and reading within a scope. Everything that was read has a number from then on. */
export type PassageLibrary = {
  passages: Passages
  search(query: string, filters?: { from?: string; to?: string }): Promise<{ found: Passage[]; notes: string[] }>
  /** The statements that answer best, without a model. Each gets its number when it is quoted. */
  statements(question: string): Promise<Answering[]>
  /** What should have been looked at and was not, in sentences. */
  notRead: Set<string>
  read(ref: string): Promise<Passage[]>
}

const NOT_ALL_DOCUMENTS =
  "Not all of this project's documents were read: there are too many, they are too large, or some cannot be opened."
const MOST_FOUND = 8
/** So far it looks past dex's own chats for something else. */
const MOST_SKIPPED = 3 * MOST_FOUND

export async function openLibrary(dex: Dex, scope: AnswerScope): Promise<PassageLibrary> {
  const store = await dex.store()
  const passages = createPassages()
  const notRead = new Set<string>()
  if (scope.collections) await knownCollections(dex, scope.collections)
  return {
    passages,
    notRead,
    async search(query, filters = {}) {
      const found: Passage[] = []
      for (let offset = 0; ; offset += MOST_FOUND) {
        const wanted = { query, ...filters, by: "conversation" as const, limit: MOST_FOUND, offset }
        const { results, notes } = await searchWithin(dex, scope, wanted)
        for (const { id, message_index } of results) {
          const row = (await resolveRef(dex, id)).row
          if (row.kind === "dex" || found.length === MOST_FOUND) continue
          const [message] = await store.messages(row.ref, [message_index])
          const passage = message && passages.add(row, message)
          if (passage) found.push(passage)
        }
        const isFull = found.length === MOST_FOUND || results.length < MOST_FOUND || offset >= MOST_SKIPPED
        if (isFull) return { found, notes }
      }
    },
    async statements(asked) {
      const question = await questionOf(dex, asked)
      const { candidates, isWhole } = await answerCandidates(dex, question, scope, passages)
      if (!isWhole) notRead.add(NOT_ALL_DOCUMENTS)
      return chosen(rankStatements(question, candidates))
    },
    async read(ref) {
      if (!parseRef(ref))
        throw new DexError("bad_ref", `"${ref.slice(0, 80)}" is not a ref. Give one that a search showed.`)
      const { row, number } = await resolveRef(dex, ref)
      await assertInScope(dex, row, scope)
      const all = await store.messages(row.ref)
      return readPart(row, all, number).flatMap((message) => passages.add(row, message) ?? [])
    },
  }
}

const AROUND = 1
const MOST_READ = 12

/** A section with those below it, a message with its neighbours, or the beginning of the whole. */
function readPart(row: ConversationRow, all: StoredMessage[], number: number | undefined): StoredMessage[] {
  if (number === undefined) return all.slice(0, MOST_READ)
  if (row.kind === "document") return withSubsections(all, number).slice(0, MOST_READ)
  const at = all.findIndex((message) => message.number === number)
  if (at === -1) throw new DexError("no_message", `There is no message ${number} in it.`)
  return all.slice(Math.max(0, at - AROUND), at + AROUND + 1)
}

async function assertInScope(dex: Dex, { kind, ref }: ConversationRow, scope: AnswerScope): Promise<void> {
  const isDocument = kind === "document"
  const outside =
    kind === "dex" ||
    scope.among === (isDocument ? "history" : "docs") ||
    (scope.collections !== undefined && !isDocument) ||
    (isDocument && !(await isOpen(dex, collectionOf(ref.id), scope)))
  if (outside) throw new DexError("out_of_scope", "That is outside of what this question may look at.")
}

async function isOpen(dex: Dex, name: string, { collections, noGlobal }: AnswerScope): Promise<boolean> {
  if (collections) return collections.includes(name)
  const collection = (await (await dex.store()).collections()).find((one) => one.name === name)
  return collection !== undefined && isReachable(collection, { noGlobal, inside: dex.project })
}
