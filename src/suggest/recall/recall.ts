import { localDay } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import type { Moment } from "../../core/suggestion.ts"
import { isPlainPath } from "../../learn/paths.ts"
import type { HistoryReader, StoredMessage } from "../../store/history/store.ts"
import type { MatchedCommit } from "../../store/knowledge/git.ts"
import type { MatchedConversation } from "../../store/knowledge/turns.ts"
import { type Candidate, speakerName } from "../finders/finder.ts"
import { isSameBranch, type Recalled } from "./find.ts"
import { type ChosenQuote, charsOf, chooseQuotes, joinQuotes } from "./quote.ts"

// Says at a prompt which earlier conversation it is about: with quotes if the words alone show it, otherwise in one line.

const MAX_QUOTED_CHARS = 1_350
/** With less room than this left, the conversation that was changed is only named. */
const MIN_QUOTED_CHARS = 150
const MAX_TITLE_LENGTH = 100
const MAX_FILES = 3
/** The keys of recalled conversations begin with this. */
export const RECALL_PREFIX = "recall:"

export async function recalledCandidate(store: HistoryReader, recalled: Recalled, moment: Moment): Promise<Candidate> {
  const { conversation, changed } = lastChange(recalled)
  const { source, id } = conversation
  const common = { key: `${RECALL_PREFIX}${source}:${id}`, names: [], features: { recalled: 1 } }
  const quotes = recalled.isQuotable ? await quotesOf(store, conversation, recalled, MAX_QUOTED_CHARS) : []
  const [best] = quotes
  if (!best) {
    const ref = formatRef({ source, id, number: conversation.number })
    return { ...common, kind: "conversation", ref, ...named(conversation, moment), reason: recalled.filesChanged ?? "" }
  }
  const room = MAX_QUOTED_CHARS - charsOf(quotes)
  const before = changed && room >= MIN_QUOTED_CHARS ? await quotesOf(store, changed, recalled, room) : []
  return {
    ...common,
    kind: "decision",
    title: `Discussed before, on ${localDay(conversation.ended_at)}`,
    summary: [...inWords(quotes), ...(before.length > 0 ? ["Before that change:", ...inWords(before)] : [])].join(" "),
    reason: changed
      ? `It changed what was decided on ${localDay(changed.started_at)} in ${formatRef({ source: changed.source, id: changed.id })}.`
      : ["No other conversation here is as close to this prompt.", recalled.filesChanged].filter(Boolean).join(" "),
    ref: formatRef({ source, id, number: best.number }),
  }
}

/** Names a commit, but does not quote it: its message may be a stranger's. */
export function recalledCommit({ hash, at, files }: MatchedCommit): Candidate {
  const names = files.filter(isPlainPath).slice(0, MAX_FILES)
  return {
    kind: "change",
    key: `${RECALL_PREFIX}git:${hash}`,
    title: `A commit of ${localDay(at)} is about this: ${hash.slice(0, 8)}`,
    summary: names.length > 0 ? `It changed ${names.join(", ")}.` : "",
    reason: "No other commit here is as close to this prompt.",
    ref: `git:${hash}`,
    names: [],
    features: { recalled: 1 },
  }
}

function inWords(quotes: readonly ChosenQuote[]): string[] {
  return joinQuotes(quotes).map(({ by, text }) => `${by === "person" ? "The developer" : "The agent"}: "${text}"`)
}

/** Shows a title only if it cannot contain a stranger's words. */
function named(
  { imported_from, ended_at, branch, title, web_at }: MatchedConversation,
  moment: Moment,
): Pick<Candidate, "title" | "summary"> {
  const isHere = isSameBranch(branch, moment.branch)
  const onBranch = isHere ? ", on this branch" : branch !== undefined && isPlainPath(branch) ? `, on ${branch}` : ""
  const isOwn = web_at === undefined && imported_from === undefined
  return {
    title: `${speakerName(imported_from)} worked on this before, on ${localDay(ended_at)}${onBranch}`,
    summary: isOwn && title !== undefined ? `"${title.slice(0, MAX_TITLE_LENGTH)}"` : "",
  }
}

/**
 * The last conversation that says that it changed what was decided about the same thing, and the one before it. Otherwise the one
 * that matches the prompt best. One that was imported may say anything, so it changes nothing here.
 */
function lastChange({ conversation, others }: Recalled): {
  conversation: MatchedConversation
  changed?: MatchedConversation
} {
  const own = others.filter(({ imported_from }) => imported_from === undefined)
  const newestFirst = [conversation, ...own].sort((a, b) => b.started_at - a.started_at)
  const upToBest = newestFirst.slice(0, newestFirst.indexOf(conversation) + 1)
  const i = upToBest.findIndex(({ says_change }, at) => says_change && newestFirst[at + 1] !== undefined)
  return i < 0 ? { conversation } : { conversation: newestFirst[i]!, changed: newestFirst[i + 1]! }
}

/** None from a history that was imported, which may contain anything. */
async function quotesOf(
  store: HistoryReader,
  conversation: MatchedConversation,
  { words, topic }: Recalled,
  maxChars: number,
): Promise<ChosenQuote[]> {
  const { number: around, web_at, imported_from } = conversation
  if (imported_from !== undefined) return []
  return chooseQuotes(await messagesOf(store, conversation), { words, topic, around, web_at, maxChars })
}

async function messagesOf(store: HistoryReader, { source, id }: MatchedConversation): Promise<StoredMessage[]> {
  return (await store.messages({ source, id })).filter(({ superseded, copied }) => !superseded && !copied)
}
