import { DAY_MS } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { many } from "../../render/words.ts"
import type { Query } from "../../search/query.ts"
import type { SearchOutcome } from "../../search/search.ts"

const STALE_MS = 3 * DAY_MS

/** Notes about anything hidden, incomplete or degraded in an answer, and how to change that. */
export function notesOn(
  outcome: SearchOutcome,
  query: Query,
  syncedAt: number | undefined,
  unread: string | undefined,
  { now, isTeam = false }: { now: number; isTeam?: boolean },
): string[] {
  const { plan, scanned, hits, mode } = outcome
  const notes: string[] = []
  if (unread !== undefined) notes.push(unread)
  else if (syncedAt !== undefined && now - syncedAt > STALE_MS)
    notes.push(`Last synced ${Math.floor((now - syncedAt) / DAY_MS)} days ago. \`dex sync\` reads what is new.`)
  if (mode === "scan" && scanned)
    notes.push(
      outcome.index_is_damaged
        ? `The search index is damaged, so ${grouped(scanned.conversations)} of ${grouped(scanned.of)} conversations, subagents and notes were read one by one. \`dex sync\` rebuilds it.`
        : `There is no search index yet: ${grouped(scanned.conversations)} of ${grouped(scanned.of)} conversations, subagents and notes were read one by one. \`dex sync\` builds it.`,
    )
  else if (!outcome.index_is_current)
    notes.push(
      isTeam
        ? "The hub's search index is not up to date: the newest messages may be missing. Try again in a moment."
        : "The search index is not up to date: the newest messages may be missing. `dex sync` updates it.",
    )
  if (hits.length === 0 && outcome.skipped.some((row) => row.reason === "floor"))
    notes.push("The nearest results match too little of the question to be shown. `dex trace` shows them.")
  if (outcome.matched === "some" && hits.length > 0)
    notes.push(
      mode === "hybrid"
        ? "No message contains all of these words; these contain some of them, or mean something similar."
        : "No message contains all of these words; these contain some of them.",
    )
  if (query.without.length > 0)
    notes.push(
      `Excluded: ${query.without.join(", ")}. To search for a word with a dash before it, put it in quotation marks.`,
    )
  const commonWords = plan?.common.filter(({ name }) => name === "words").map(({ term }) => term.words) ?? []
  if (commonWords.length > 0) notes.push(`Very common words only affect the order: ${commonWords.join(", ")}.`)
  if (plan?.newest !== undefined)
    notes.push(
      `These words are so common that only the newest ${grouped(plan.newest)} messages were searched. Add a rarer word to search everything.`,
    )
  return notes
}

/** A note on matches in private projects. It is shown only to a person, never to an agent. */
export function privateNote({ hidden_private }: SearchOutcome): string[] {
  if (hidden_private === 0) return []
  return [`Not shown: ${many(hidden_private, "match", "matches")} in private projects.`]
}
