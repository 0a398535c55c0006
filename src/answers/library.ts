import type { Ref } from "../core/ref.ts"
import { parseQuery } from "../search/query.ts"
import { changesLookup } from "../tools/changed-later.ts"
import type { Dex } from "../tools/context.ts"
import { requireVisibleCollections } from "../tools/docs/collections.ts"
import { answerCandidates } from "./candidates.ts"
import { type AnswerStatement, chooseBlocks, rankStatements } from "./extract.ts"
import { type AnswerScope, ownHistory, type PassageSource } from "./passage-source.ts"
import { createPassages, type Passage, type Passages } from "./passages.ts"

/** Searches and reads within a scope. Every passage gets a number when it is read. */
export type PassageLibrary = {
  passages: Passages
  search(query: string, filters?: { from?: string; to?: string }): Promise<{ found: Passage[]; notes: string[] }>
  /** The best blocks of text, chosen without a model. A block gets its number when it is quoted. */
  statements(question: string): Promise<AnswerStatement[]>
  /** A question's words that occur least often, rarest first. */
  rarestWords(question: string): Promise<string[]>
  /** Notes about sources that could not be read. */
  unreadNotes: Set<string>
  read(ref: string): Promise<Passage[]>
  /** The files that each conversation edited most. */
  editedBy(conversations: Ref[]): Promise<string[][]>
}

const NOT_ALL_DOCUMENTS =
  "Some of this project's documents or code were not read: there are too many, they are too large, or they cannot be opened."
const MAX_FOUND = 8
/** dex's own chats are skipped, so a search may have to ask for more results. It stops at this offset. */
const MAX_OFFSET = 3 * MAX_FOUND

export async function openLibrary(
  dex: Dex,
  scope: AnswerScope,
  source: PassageSource = ownHistory(dex, scope),
): Promise<PassageLibrary> {
  const passages = createPassages(await changesLookup(dex))
  const unreadNotes = new Set<string>()
  if (scope.collections) await requireVisibleCollections(dex, scope.collections)
  return {
    passages,
    unreadNotes,
    editedBy: source.editedBy,
    async search(query, filters = {}) {
      const passagesFound: Passage[] = []
      for (let offset = 0; ; offset += MAX_FOUND) {
        const request = { query, ...filters, by: "conversation" as const, limit: MAX_FOUND, offset }
        const { found, isLast, notes } = await source.find(request)
        for (const { row, message } of found) {
          const passage =
            row.kind === "dex" || passagesFound.length === MAX_FOUND ? undefined : passages.add(row, message)
          if (passage) passagesFound.push(passage)
        }
        if (passagesFound.length === MAX_FOUND || isLast || offset >= MAX_OFFSET) return { found: passagesFound, notes }
      }
    },
    async statements(query) {
      const { question, candidates, isComplete } = await answerCandidates(dex, query, scope, passages, source)
      if (!isComplete) unreadNotes.add(NOT_ALL_DOCUMENTS)
      return chooseBlocks(question, rankStatements(question, candidates))
    },
    async rarestWords(query) {
      const { weights } = await source.find({ query, by: "message", limit: 1, offset: 0 })
      const { words } = parseQuery(query)
      return words.toSorted((a, b) => weights[words.indexOf(b)]! - weights[words.indexOf(a)]!)
    },
    async read(ref) {
      const { row, messages } = await source.read(ref)
      return messages.flatMap((message) => passages.add(row, message) ?? [])
    },
  }
}
