import { DexError } from "../core/error.ts"
import { collectionOf, formatRef, parseRef, type Ref } from "../core/ref.ts"
import type { HubClient } from "../hub-client/client.ts"
import { wordWeights } from "../search/floor.ts"
import { parseQuery } from "../search/query.ts"
import { indexWithout, isSearchedByDefault, projectsHiddenFrom } from "../search/scope.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { withSubsections } from "../tools/docs/sections.ts"
import { resolveRef } from "../tools/resolve.ts"
import { run as runSearch } from "../tools/search/run.ts"

/**
 * Limits what may be read for one answer. This is enforced in code, whatever a model asks for. dex's own chats are never read: if
 * an answer could cite an earlier answer, it would need no source at all.
 */
export type AnswerScope = { among: "history" | "docs" | "all"; collections?: string[]; noGlobal?: boolean }

export type PassageSearch = {
  query: string
  by: "conversation" | "message"
  from?: string
  to?: string
  limit: number
  offset: number
}

/** The facts about a conversation that its passages need. */
export type PassageRow = Pick<ConversationRow, "ref" | "kind" | "title" | "ended_at">

export type FoundMessages = {
  /** The best match first. */
  found: { row: PassageRow; message: StoredMessage; score: number }[]
  /** True if there are no more results. */
  isLast: boolean
  /** A weight for each word of the question. Rare words have higher weights. */
  weights: number[]
  notes: string[]
}

/** A searchable history: this machine's, or a team's. */
export type PassageSource = {
  find(search: PassageSearch): Promise<FoundMessages>
  /** Reads a section with its subsections, a message with its neighbours, or the beginning of a conversation or document. */
  read(ref: string): Promise<{ row: PassageRow; messages: StoredMessage[] }>
  /** The files that each conversation edited most. */
  editedBy(conversations: Ref[]): Promise<string[][]>
}

const MAX_EDITED_FILES = 40

/** This machine's history, limited to the scope. */
export function ownHistory(dex: Dex, scope: AnswerScope): PassageSource {
  return {
    async find(search) {
      const store = await dex.store()
      // Without `prose`, messages rank only by how well they match, not by how readable they are.
      const { results, notes } = await runSearch(
        dex,
        { ...search, in: scope.among, collections: scope.collections, no_global: scope.noGlobal, explain: false },
        { prose: false },
      )
      const matches: FoundMessages["found"] = []
      for (const { id, message_index, score_final } of results) {
        const { row } = await resolveRef(dex, id)
        const [message] = await store.messages(row.ref, [message_index])
        if (message) matches.push({ row, message, score: score_final })
      }
      const fullIndex = await dex.index()
      const hidden = projectsHiddenFrom(await store.projects("private"), dex.project, dex.machine.platform)
      const index = fullIndex && (await indexWithout(store, fullIndex, hidden))
      const query = parseQuery(search.query)
      return {
        found: matches,
        isLast: results.length < search.limit,
        weights: index ? await wordWeights(index, query) : query.words.map(() => 1),
        notes,
      }
    },
    async read(ref) {
      if (!parseRef(ref))
        throw new DexError("bad_ref", `"${ref.slice(0, 80)}" is not a ref. Use one from the search results.`)
      const { row, number } = await resolveRef(dex, ref)
      await assertInScope(dex, row, scope)
      return { row, messages: selectMessages(row, await (await dex.store()).messages(row.ref), number) }
    },
    async editedBy(conversations) {
      const store = await dex.store()
      const files: string[][] = []
      for (const ref of conversations) files.push(await store.editedFiles(ref, MAX_EDITED_FILES))
      return files
    },
  }
}

export type SentPassages = Omit<FoundMessages, "found"> & { found: (FoundMessages["found"][number] & { id: string })[] }
export type EditedFiles = { edited: { id: string; files: string[] }[] }
export type SentPassage = { id: string; row: PassageRow; messages: StoredMessage[] }

/** A team's shared history, searched and read on its hub. */
export function teamHistory(hub: Pick<HubClient, "ask">): PassageSource {
  return {
    find: (search) => hub.ask<SentPassages>("passages", search),
    read: (ref) => hub.ask<SentPassage>("passage", { id: ref }),
    async editedBy(conversations) {
      const ids = conversations.map((ref) => formatRef(ref))
      const { edited } = await hub.ask<EditedFiles>("edited_files", { ids })
      const files = new Map(edited.map((one) => [one.id, one.files]))
      return ids.map((id) => files.get(id) ?? [])
    },
  }
}

const MESSAGES_AROUND = 1
const MAX_READ_MESSAGES = 12

function selectMessages(row: ConversationRow, messages: StoredMessage[], number: number | undefined): StoredMessage[] {
  if (number === undefined) return messages.slice(0, MAX_READ_MESSAGES)
  if (row.kind === "document") return withSubsections(messages, number).slice(0, MAX_READ_MESSAGES)
  const index = messages.findIndex((message) => message.number === number)
  if (index === -1) throw new DexError("no_message", `${formatRef(row.ref)} has no message ${number}.`)
  return messages.slice(Math.max(0, index - MESSAGES_AROUND), index + MESSAGES_AROUND + 1)
}

async function assertInScope(dex: Dex, { kind, ref }: ConversationRow, scope: AnswerScope): Promise<void> {
  const isDocument = kind === "document"
  const isOutside =
    kind === "dex" ||
    scope.among === (isDocument ? "history" : "docs") ||
    (scope.collections !== undefined && !isDocument) ||
    (isDocument && !(await isReadable(dex, collectionOf(ref.id), scope)))
  if (isOutside) throw new DexError("out_of_scope", "That is outside the scope of this question.")
}

async function isReadable(dex: Dex, name: string, { collections, noGlobal }: AnswerScope): Promise<boolean> {
  if (collections) return collections.includes(name)
  const collection = (await (await dex.store()).collections()).find((one) => one.name === name)
  return collection !== undefined && isSearchedByDefault(collection, { noGlobal, inside: dex.project })
}
