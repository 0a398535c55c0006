import { DexError } from "../../../../src/core/error.ts"
import { collectionTag, kindTag, roleTag, sourceTag, toolTag } from "../../../../src/store/index/fields.ts"
import type { MemberAccess } from "../../../../src/store/index/index-scope.ts"
import type { IndexFilter } from "../../../../src/store/index/query.ts"
import type { Term } from "../../../../src/store/index/terms.ts"
import { indexWordsInOrder } from "../../../../src/store/index/tokenizer.ts"
import type { TenantKey } from "../../store/keyring.ts"
import { BEGINNING_LENGTHS, beginningsOf, hashedBeginning, VISIBILITIES } from "./document.ts"

/** A query of OpenSearch. */
export type Clause = Record<string, unknown>

export const NOTHING: Clause = { match_none: {} }
/** The maximum number of values of a `terms` query. */
const MAX_VALUES = 65_536

/** Matches documents in which the field has one of these values. */
export function anyValue(field: string, values: readonly (string | number)[]): Clause {
  const parts: Clause[] = []
  for (let from = 0; from < values.length; from += MAX_VALUES)
    parts.push({ terms: { [field]: values.slice(from, from + MAX_VALUES).map(String) } })
  return anyOfClauses(parts)
}

function anyOfClauses(clauses: Clause[]): Clause {
  if (clauses.length <= 1) return clauses[0] ?? NOTHING
  return { bool: { should: clauses, minimum_should_match: 1 } }
}

/** The messages that a member may read. The same condition is in `scope.ts`, and in the laptop's `index-scope.ts` (ACCESS_SQL). */
export function wallOf({ author, org, projects, opened, withdrawn }: MemberAccess): Clause {
  const [hidden, , shared] = VISIBILITIES
  const readable = [
    { term: { author: String(author) } },
    ...(org ? [{ term: { visibility: shared } }] : []),
    ...(projects.length > 0
      ? [{ bool: { filter: [anyValue("project", projects)], must_not: [{ term: { visibility: hidden } }] } }]
      : []),
    ...(opened.length > 0 ? [anyValue("conversation", opened)] : []),
  ]
  return {
    bool: {
      filter: [anyOfClauses(readable)],
      must_not: withdrawn.length > 0 ? [anyValue("conversation", withdrawn)] : [],
    },
  }
}

/** A term as the cluster knows it. Without words and without a beginning, it matches nothing. */
export type HashedTerm = {
  term: Term
  words: string[]
  /** The beginning of the last word, if that may be longer. */
  beginning?: string
  /** False if messages that match must be checked, because only a shorter beginning is indexed. */
  isExact: boolean
}

export function hashTerm(key: TenantKey, term: Term): HashedTerm {
  const [plainWords = []] = indexWordsInOrder([term.words])
  if (!term.prefix || plainWords.length === 0)
    return { term, words: plainWords.map((word) => key.word(word)), isExact: true }
  const last = plainWords.at(-1)!
  const beginning = beginningsOf(last).at(-1)
  if (beginning === undefined)
    throw new DexError(
      "usage",
      `This team's words can be searched by their beginning only from ${BEGINNING_LENGTHS[0]} characters on. Type more of ${JSON.stringify(last)}, or the whole word.`,
    )
  const words = plainWords.slice(0, -1).map((word) => key.word(word))
  const isExact = words.length === 0 && beginning.length === last.length
  return { term, words, beginning: hashedBeginning(key, beginning), isExact }
}

/** Matches the messages that contain a term. `weight` is the score of one occurrence. */
export function termClause({ words, beginning }: HashedTerm, weight?: number): Clause {
  if (beginning !== undefined)
    return {
      bool: {
        must: [{ term: { beginnings: weighed(beginning, weight) } }],
        filter: words.length > 0 ? [phrase(words)] : [],
      },
    }
  return words.length === 0 ? NOTHING : phrase(words, weight)
}

function weighed(value: string, boost = 1) {
  return { value, boost }
}

/** Lucene scores a phrase once for each of its words. */
function phrase(words: string[], weight = 1): Clause {
  if (words.length === 1) return { term: { words: weighed(words[0]!, weight) } }
  return { match_phrase: { words: { query: words.join(" "), boost: weight / words.length } } }
}

/** The numbers of what a filter names. */
export type FilterNumbers = Partial<
  Record<"projects" | "excludedProjects" | "conversations" | "excludedConversations", readonly number[]>
>

/** The parts of a filter that are not words. Returns undefined if they can match nothing. */
export function filterClauses(
  filter: Omit<IndexFilter, "match">,
  numbers: FilterNumbers,
  key: TenantKey,
): { must: Clause[]; not: Clause[] } | undefined {
  const tagged = (tags: string[] | undefined) =>
    tags && [
      anyValue(
        "tags",
        tags.map((tag) => key.word(tag)),
      ),
    ]
  const among = (field: string, values: readonly number[] | undefined) => values && [anyValue(field, values)]
  const { from, to } = filter
  const must = [
    tagged(filter.sources?.map(sourceTag)),
    tagged(filter.kinds?.map(kindTag)),
    tagged(filter.collections?.map(collectionTag)),
    tagged(filter.roles?.map(roleTag)),
    tagged(filter.tools?.map(toolTag)),
    among("project", numbers.projects),
    among("conversation", numbers.conversations),
    from === undefined && to === undefined ? undefined : [{ range: { at: { gte: from, lte: to } } }],
  ].flatMap((clauses) => clauses ?? [])
  const not = [
    tagged(filter.excludedKinds?.map(kindTag)),
    tagged(filter.excludedCollections?.map(collectionTag)),
    among("project", numbers.excludedProjects),
    among("conversation", numbers.excludedConversations),
  ].flatMap((clauses) => clauses ?? [])
  return must.includes(NOTHING) ? undefined : { must, not }
}
