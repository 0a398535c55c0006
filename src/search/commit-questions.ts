import { formatRef, type Ref, wholeOf } from "../core/ref.ts"
import type { CommitRow, HistoryReader } from "../store/history/store.ts"

export type Reach = {
  refs: Set<string>
  messages: number
  bytes: number
  of_messages: number
  of_conversations: number
}

/** The newest conversations that together have about so many messages. */
export async function newestWithin(store: HistoryReader, mostMessages: number, inside: string): Promise<Reach> {
  const reach: Reach = { refs: new Set(), messages: 0, bytes: 0, of_messages: 0, of_conversations: 0 }
  for (let offset = 0; ; offset += PAGE) {
    const { rows } = await store.list({ limit: PAGE, offset, inside })
    for (const row of rows) {
      const own = row.message_count - row.copied_count
      reach.of_messages += own
      reach.of_conversations++
      if (reach.refs.size > 0 && reach.of_messages > mostMessages) continue
      reach.refs.add(formatRef(row.ref))
      reach.messages += own
      reach.bytes += row.text_bytes
    }
    if (rows.length < PAGE) return reach
  }
}

const PAGE = 500

/** A commit's subject as a question, and the conversations that made a commit with it. */
export type CommitQuestion = { subject: string; hash: string; gold: Ref[] }

export type Questions = { questions: CommitQuestion[]; left_out: Record<LeftOut, number> }
export type LeftOut = "too_short" | "merge_or_wip" | "repeated" | "out_of_reach" | "beyond_limit"

/** "fmt" and "fix lint" ask for nothing in particular. */
const LEAST_WORDS = 4
const NO_QUESTION =
  /^(?:wip\b|fixup!|squash!|amend!|merge (?:branch|remote|pull request|tag|commit)|merge \S+ (?:into|from) )/i

/** Newest first. `commits` are newest first as well. */
export function questionsOf(commits: CommitRow[], reach: ReadonlySet<string>, most: number): Questions {
  const left_out = { too_short: 0, merge_or_wip: 0, repeated: 0, out_of_reach: 0, beyond_limit: 0 }
  const questions: CommitQuestion[] = []
  for (const group of Map.groupBy(commits, ({ subject }) => sameWords(subject)).values()) {
    const { subject } = group[0]!
    left_out.repeated += group.length - 1
    const gold = new Map(group.map(({ ref }) => [formatRef(wholeOf(ref)), wholeOf(ref)]))
    for (const name of gold.keys()) if (!reach.has(name)) gold.delete(name)
    if (subject.trim().split(/\s+/).length < LEAST_WORDS) left_out.too_short++
    else if (NO_QUESTION.test(subject)) left_out.merge_or_wip++
    else if (gold.size === 0) left_out.out_of_reach++
    else if (questions.length >= most) left_out.beyond_limit++
    // The first commit's hash: a repetition must not move a question from one half to the other.
    else questions.push({ subject, hash: group.at(-1)!.hash, gold: [...gold.values()] })
  }
  return { questions, left_out }
}

function sameWords(subject: string): string {
  return subject.toLowerCase().split(/\s+/).join(" ").trim()
}
