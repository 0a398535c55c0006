import { cardOf, fieldsOf } from "../../../../src/store/index/fields.ts"
import { MAX_CARD_FILES } from "../../../../src/store/index/follow-feed.ts"
import type { Term } from "../../../../src/store/index/terms.ts"
import { textsWith } from "../../../../src/store/index/tokenizer.ts"
import type { Database } from "../../store/connection.ts"
import { openTenantHistory } from "../../store/history.ts"
import type { TenantKey } from "../../store/keyring.ts"
import { refsOfNumbers } from "../../store/word-index.ts"
import type { Search } from "./client.ts"
import { placeOf } from "./document.ts"
import { type Clause, type HashedTerm, hashTerm, NOTHING, termClause } from "./query.ts"

/** A term, and how many of the messages that the member may read contain it. */
export type CountedTerm = {
  containing: number
  /** False if there may be more matches than those that were checked. */
  isComplete: boolean
  /** The query for the term. `weight` is the score of one occurrence. */
  clause(weight?: number): Clause
}

type Parts = { db: Database; tenant: number; key: TenantKey; wall: Clause; search: Search }

/** How many messages are read to check whether they contain a word with a certain beginning. */
const MAX_CHECKED = 300

/** Counts terms within a wall, each once. All that are needed at the same moment are one request. */
export function termCounts({ db, tenant, key, wall, search }: Parts) {
  const known = new Map<string, Promise<CountedTerm>>()
  let all: Promise<number> | undefined

  const countAll = (terms: HashedTerm[]) => {
    const filters = Object.fromEntries(terms.map((term, i) => [`${i}`, termClause(term)]))
    const answer = search({
      query: { bool: { filter: [wall] } },
      size: 0,
      track_total_hits: true,
      ...(terms.length > 0 && { aggs: { terms: { filters: { filters } } } }),
    })
    all ??= handled(answer.then(({ hits }) => hits.total!.value))
    return terms.map((term, i) =>
      handled<CountedTerm>(
        answer.then(({ aggregations }) => ({
          containing: aggregations!.terms!.buckets[i]!.doc_count,
          isComplete: true,
          clause: (weight?: number) => termClause(term, weight),
        })),
      ),
    )
  }

  /** Reads the messages that may contain the term. Those that do are named in the query. */
  const check = async (term: HashedTerm): Promise<CountedTerm> => {
    const { hits } = await search({
      query: { bool: { filter: [wall, termClause(term)] } },
      sort: [{ at: { order: "desc", missing: "_last" } }],
      size: MAX_CHECKED,
    })
    const candidates = hits.hits.map(({ _id }) => _id)
    const texts = await textsOf(db, tenant, candidates)
    const matching = textsWith(
      texts.map(({ text }) => text),
      term.term,
    )
    const ids = [...new Set(texts.flatMap(({ id }, i) => (matching.has(i) ? [id] : [])))]
    return {
      containing: ids.length,
      isComplete: candidates.length < MAX_CHECKED,
      clause: (boost = 1) =>
        ids.length === 0 ? NOTHING : { constant_score: { filter: { ids: { values: ids } }, boost } },
    }
  }

  return {
    /** The number of messages that the member may read. */
    messages: async (): Promise<number> => {
      if (!all) countAll([])
      return all!
    },
    of: async (terms: readonly Term[]): Promise<CountedTerm[]> => {
      const names = terms.map((term) => JSON.stringify([term.words, term.prefix]))
      const missing = new Map<string, HashedTerm>()
      for (const [i, name] of names.entries())
        if (!known.has(name) && !missing.has(name)) missing.set(name, hashTerm(key, terms[i]!))
      const exact = [...missing].filter(([, { isExact }]) => isExact)
      if (exact.length > 0) {
        const counted = countAll(exact.map(([, term]) => term))
        for (const [i, [name]] of exact.entries()) known.set(name, counted[i]!)
      }
      for (const [name, term] of missing) if (!term.isExact) known.set(name, handled(check(term)))
      return Promise.all(names.map((name) => known.get(name)!))
    },
  }
}

/** Whoever needs the result gets the error. If nobody does, it must not end the process. */
function handled<T>(result: Promise<T>): Promise<T> {
  result.catch(() => {})
  return result
}

/** The indexed texts of these documents, one for each column. */
async function textsOf(db: Database, tenant: number, ids: string[]): Promise<{ id: string; text: string }[]> {
  const history = openTenantHistory(db, tenant)
  const places = Map.groupBy(
    ids.map((id) => ({ id, ...placeOf(id) })),
    ({ conversation }) => conversation,
  )
  const refs = await refsOfNumbers(db, tenant, [...places.keys()])
  const texts: { id: string; text: string }[] = []
  for (const [conversation, ofConversation] of places) {
    const row = refs.has(conversation) ? await history.conversation(refs.get(conversation)!) : undefined
    if (!row) continue
    const messages = new Map(
      (
        await history.messages(
          row.ref,
          ofConversation.map(({ number }) => number),
        )
      ).map((message) => [message.number, message]),
    )
    for (const { id, number } of ofConversation) {
      const message = messages.get(number)
      const fields = message ? fieldsOf(message) : cardOf(row, await history.editedFiles(row.ref, MAX_CARD_FILES))
      for (const text of Object.values(fields ?? {})) texts.push({ id, text })
    }
  }
  return texts
}
