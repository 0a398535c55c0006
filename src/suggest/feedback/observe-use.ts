import { DAY_MS } from "../../core/dates.ts"
import { formatRef, parseRef, type Ref } from "../../core/ref.ts"
import type { Item } from "../../core/suggestion.ts"
import { pathBelow } from "../../learn/paths.ts"
import type { Changes, HistoryReader, StoredMessage } from "../../store/history/store.ts"
import type { StoredSuggestion, Suggestions } from "../../store/suggestions/suggestions.ts"
import { learnFromVerdict } from "./feedback.ts"

const OBSERVED_PERIOD_MS = 7 * DAY_MS
/**
 * The maximum number of sessions to read at once. Further sessions are read the next time. All sessions in the last batch of
 * changes are read, even if they exceed the limit.
 */
const MAX_SESSIONS = 50
const BATCH = 100

/**
 * Marks the suggested items that sessions used without giving a verdict, by opening a ref with dex or editing a file. Reads the
 * history, and returns how many items were marked. A given verdict is not changed. A session is read if it changed or received a
 * suggestion since the last time. If there is nothing new, nothing is read.
 */
export async function observeUse(store: HistoryReader, suggestions: Suggestions, now: number): Promise<number> {
  const revision = await store.revision()
  const lastObserved = suggestions.observationPosition()
  const [newest] = suggestions.list({ would: false, limit: 1 })
  if (newest === undefined || (lastObserved?.token === revision && lastObserved.seq >= newest.seq)) return 0
  const shown = suggestions.list({ from: now - OBSERVED_PERIOD_MS, would: false, limit: 1_000 }).reverse()
  const openBySession = Map.groupBy(shown.filter(isOpen), sessionOf)
  const observedSessions = new Set<string>()
  let used = 0
  const observeSession = async (session: string) => {
    observedSessions.add(session)
    used += await markUsedItems(store, suggestions, openBySession.get(session)!)
  }

  // Conversations that change in the meantime appear in the feed again, so nothing is missed.
  let { token, seq } = lastObserved ?? { token: revision, seq: 0 }
  let feed: Changes
  do {
    feed = await store.changes(token, BATCH)
    token = feed.rebuild ? revision : feed.token
    if (feed.rebuild) seq = 0
    for (const { ref } of feed.changes)
      if (ref && openBySession.has(formatRef(ref))) await observeSession(formatRef(ref))
  } while (feed.more && !feed.rebuild && observedSessions.size < MAX_SESSIONS)
  for (const suggestion of shown) {
    if (suggestion.seq <= seq) continue
    const session = sessionOf(suggestion)
    if (openBySession.has(session) && !observedSessions.has(session)) {
      if (observedSessions.size >= MAX_SESSIONS) break
      await observeSession(session)
    }
    seq = suggestion.seq
  }
  suggestions.saveObservationPosition({ token, seq })
  return used
}

async function markUsedItems(
  store: HistoryReader,
  suggestions: Suggestions,
  shown: StoredSuggestion[],
): Promise<number> {
  const { source, session } = shown[0]!.moment
  const ref: Ref = { source: source!, id: session! }
  const messages = (await store.conversation(ref)) ? await store.messages(ref) : []
  let used = 0
  for (const { id, moment, items } of shown) {
    const unjudged = items.filter(({ status }) => status === "shown" || status === "pending")
    const [before, after] = [actionsIn(messages, -Infinity, moment.at), actionsIn(messages, moment.at, Infinity)]
    for (const number of usedItems(unjudged, after, moment.project, before.files)) {
      suggestions.setStatus(id, "used", number, learnFromVerdict)
      used++
    }
  }
  return used
}

/** The session's ref. Empty if the session is unknown. */
function sessionOf({ moment: { source, session } }: StoredSuggestion): string {
  return source === undefined || session === undefined ? "" : formatRef({ source, id: session })
}

function isOpen({ moment, items }: StoredSuggestion): boolean {
  const isKnownSession = moment.source !== undefined && moment.session !== undefined
  return isKnownSession && items.some(({ status }) => status === "shown" || status === "pending")
}

/** Returns the files edited and the refs opened after `from`, up to and including `to`. */
function actionsIn(messages: readonly StoredMessage[], from: number, to: number): SessionActions {
  const inRange = messages.filter(({ at }) => at !== undefined && at > from && at <= to)
  return {
    files: inRange.flatMap(({ effects }) =>
      effects.flatMap((effect) => (effect.type === "file" && effect.action === "edited" ? [effect.path] : [])),
    ),
    refs: inRange.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool_call" ? openedBy(part.tool, part.text) : [])),
    ),
  }
}

const READ_TOOL = /(?:^|_)dex_(?:get|timeline)$/
const READ_COMMAND = /\bdex (?:show|get|timeline|read|scan) +['"]?([\w:.#§/-]{4,200})/g

function openedBy(tool: string, input: string): string[] {
  if (!READ_TOOL.test(tool)) return [...input.matchAll(READ_COMMAND)].map(([, ref]) => ref!)
  try {
    const { ids, id } = JSON.parse(input) as { ids?: unknown; id?: unknown }
    return [...(Array.isArray(ids) ? ids : []), id].filter((one) => typeof one === "string")
  } catch {
    return [] // The input is not JSON: it belongs to a freeform tool with the same name.
  }
}

/** The actions of a session in a period of time. */
export type SessionActions = {
  /** Refs that the session opened with dex, as it wrote them. */
  refs: readonly string[]
  /** Files that the session edited; absolute paths, or relative to the project. */
  files: readonly string[]
}

/**
 * The numbers of the items that were used without a verdict: the session opened the item's ref, or edited its file. `before` are
 * the files that the session had edited before the suggestion; editing those again proves nothing.
 */
export function usedItems(
  items: readonly (Pick<Item, "ref" | "file"> & { number: number })[],
  actions: SessionActions,
  project: string,
  before: readonly string[] = [],
): number[] {
  const edited = new Set(actions.files.map((file) => pathBelow(project, file)))
  for (const file of before) edited.delete(pathBelow(project, file))
  return items
    .filter(
      ({ ref, file }) =>
        (file !== undefined && edited.has(pathBelow(project, file) ?? "")) ||
        (ref !== undefined && actions.refs.some((opened) => opensRef(opened, ref))),
    )
    .map(({ number }) => number)
}

/** True if `opened` is the ref itself, or names the same conversation or any of its messages. */
function opensRef(opened: string, ref: string): boolean {
  if (opened === ref) return true
  const [query, target] = [parseRef(opened), parseRef(ref)]
  if (!query || !target) return false
  const sameSource = query.source === undefined || query.source === target.source
  const sameOwner = query.owner === undefined || query.owner === target.owner
  return sameSource && sameOwner && query.prefix.length >= 4 && target.prefix.startsWith(query.prefix)
}
