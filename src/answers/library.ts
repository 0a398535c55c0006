import { DexError } from "../core/error.ts"
import { collectionOf, parseRef } from "../core/ref.ts"
import { isReachable } from "../search/scope.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { knownCollections } from "../tools/docs/collections.ts"
import { withSubsections } from "../tools/docs/sections.ts"
import { resolveRef } from "../tools/resolve.ts"
import { run as runSearch } from "../tools/search/run.ts"
import { answerCandidates, questionOf } from "./candidates.ts"
import { type Answering, chosen, rankStatements } from "./extract.ts"
import { createPassages, type Passage, type Passages } from "./passages.ts"

/**
 * What may be looked at for one answer. Kept to in code: whatever a model asks for, nothing else is opened. dex's own
 * chats never are: an answer that could cite an earlier answer would need no source at all.
 */
export type AnswerScope = { among: "history" | "docs" | "all"; collections?: string[]; noGlobal?: boolean }

/** Searching and reading within a scope. Everything that was read has a number from then on. */
export type PassageLibrary = {
  passages: Passages
  search(query: string, filters?: { from?: string; to?: string }): Promise<{ found: Passage[]; notes: string[] }>
  /** The statements that answer best, without a model. Each gets its number when it is quoted. */
  statements(question: string): Promise<Answering[]>
  read(ref: string): Promise<Passage[]>
}

const MOST_FOUND = 8
/** So far it looks past dex's own chats for something else. */
const MOST_SKIPPED = 3 * MOST_FOUND

export async function openLibrary(dex: Dex, scope: AnswerScope): Promise<PassageLibrary> {
  const store = await dex.store()
  const passages = createPassages()
  if (scope.collections) await knownCollections(dex, scope.collections)
  return {
    passages,
    async search(query, filters = {}) {
      const found: Passage[] = []
      for (let offset = 0; ; offset += MOST_FOUND) {
        const { results, notes } = await runSearch(
          dex,
          {
            query,
            in: scope.among,
            ...(scope.collections && { collections: scope.collections }),
            ...(scope.noGlobal && { no_global: true }),
            ...filters,
            by: "conversation",
            explain: false,
            limit: MOST_FOUND,
            offset,
          },
          { prose: false },
        )
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
      return chosen(rankStatements(question, await answerCandidates(dex, question, scope, passages)))
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
