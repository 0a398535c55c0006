import type { Ref } from "../core/ref.ts"
import type { Store, StoredMessage } from "../store/store.ts"
import type { KeptSuggestion, Suggestions } from "../store/suggestions.ts"
import { learn } from "./feedback.ts"
import { type Done, usedItems } from "./implicit.ts"

const LOOKS_BACK_MS = 7 * 86_400_000
const MOST_SESSIONS = 50

/**
 * Notes what sessions went on to use of what they were told, from what the history holds of them by now: refs that they
 * opened with dex, files that they edited. Returns how many items are newly used. A verdict that was given stays.
 */
export async function observeUse(store: Store, suggestions: Suggestions, now: number): Promise<number> {
  const open = suggestions.list({ from: now - LOOKS_BACK_MS, would: false, limit: 1_000 }).filter(isOpen)
  const sessions = [...Map.groupBy(open, ({ moment }) => `${moment.source}:${moment.session}`).values()]
  let used = 0
  for (const told of sessions.slice(0, MOST_SESSIONS)) {
    const { source, session } = told[0]!.moment
    const ref: Ref = { source: source!, id: session! }
    const messages = (await store.conversation(ref)) ? await store.messages(ref) : []
    for (const { id, moment, items } of told) {
      const unjudged = items.filter(({ status }) => status === "shown" || status === "pending")
      const [before, after] = [doneIn(messages, -Infinity, moment.at), doneIn(messages, moment.at, Infinity)]
      for (const number of usedItems(unjudged, after, moment.project, before.files)) {
        suggestions.setStatus(id, "used", number, learn)
        used++
      }
    }
  }
  return used
}

function isOpen({ moment, items }: KeptSuggestion): boolean {
  const known = moment.source !== undefined && moment.session !== undefined
  return known && items.some(({ status }) => status === "shown" || status === "pending")
}

/** What was done after one time and not after another. */
function doneIn(messages: readonly StoredMessage[], from: number, to: number): Done {
  const within = messages.filter(({ at }) => at !== undefined && at > from && at <= to)
  return {
    files: within.flatMap(({ effects }) =>
      effects.flatMap((effect) => (effect.type === "file" && effect.action === "edited" ? [effect.path] : [])),
    ),
    refs: within.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool_call" ? openedBy(part.tool, part.text) : [])),
    ),
  }
}

const TOOL = /(?:^|_)dex_(?:get|timeline)$/
const COMMAND = /\bdex (?:show|get|timeline|read|scan) +['"]?([\w:.#§/-]{4,200})/g

function openedBy(tool: string, input: string): string[] {
  if (!TOOL.test(tool)) return [...input.matchAll(COMMAND)].map(([, ref]) => ref!)
  try {
    const { ids, id } = JSON.parse(input) as { ids?: unknown; id?: unknown }
    return [...(Array.isArray(ids) ? ids : []), id].filter((one) => typeof one === "string")
  } catch {
    return [] // a freeform tool of that name
  }
}
