import { DAY_MS } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import type { Query } from "../../search/query.ts"
import type { SearchOutcome } from "../../search/search.ts"

const STALE_MS = 3 * DAY_MS

/** What is hidden, incomplete or degraded in an answer, and what would change it. */
export function notesOn(
  outcome: SearchOutcome,
  query: Query,
  syncedAt: number | undefined,
  unread: string | undefined,
  now: number,
): string[] {
  const { plan, scanned, hits, mode } = outcome
  const notes: string[] = []
  if (unread !== undefined) notes.push(unread)
  else if (syncedAt !== undefined && now - syncedAt > STALE_MS)
    notes.push(`Last synced ${Math.floor((now - syncedAt) / DAY_MS)} days ago. \`dex sync\` reads what is new.`)
  if (mode === "scan" && scanned)
    notes.push(
      outcome.index_is_damaged
        ? `The index is damaged: ${grouped(scanned.conversations)} of ${grouped(scanned.of)} conversations were read one by one instead. \`dex sync\` builds it again.`
        : `There is no index yet: ${grouped(scanned.conversations)} of ${grouped(scanned.of)} conversations were read one by one. \`dex sync\` builds it.`,
    )
  else if (!outcome.index_is_current)
    notes.push("The index is catching up: the newest messages may be missing. `dex sync` completes it.")
  if (hits.length === 0 && outcome.skipped.some((row) => row.reason === "floor"))
    notes.push("What came nearest holds too little of what was asked to be shown. `dex trace` says what it was.")
  if (outcome.matched === "some" && hits.length > 0)
    notes.push(
      mode === "hybrid"
        ? "No message holds all of these words; these hold some of them, or mean something like them."
        : "No message holds all of these words; these hold some of them.",
    )
  if (query.without.length > 0)
    notes.push(
      `Without ${query.without.join(", ")}. To search for a word with a dash before it, put it in quotation marks.`,
    )
  const common = plan?.common.filter(({ name }) => name === "words").map(({ term }) => term.words) ?? []
  if (common.length > 0) notes.push(`Very common words only order what the others find: ${common.join(", ")}.`)
  if (plan?.newest !== undefined)
    notes.push(
      `These words are so common that only the newest ${grouped(plan.newest)} messages were looked at. Add a rarer word to search everything.`,
    )
  if (outcome.hidden_private > 0) notes.push(`${grouped(outcome.hidden_private)} hits in private projects, not shown.`)
  return notes
}
