import { messageText } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { wordsPattern } from "../../core/words.ts"
import { html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { StoredMessage } from "../../store/history/store.ts"
import { conversationOf } from "../../tools/fields.ts"
import { type PageRequest, requestedConversation, type ViewPage } from "../page.ts"
import { messageShowing } from "./nearby.ts"
import { splitIntoParts } from "./part-html.ts"
import { currentVersions } from "./shape.ts"

/** A message of the page with these words: their number, and the text around the first of them. */
type FoundMessage = { number: number; count: number; before: string; match: string; after: string }

const MAX_ROWS = 200
const CHARS_AROUND = 80

/**
 * The messages of a conversation that contain some words. With `part`, only the numbers that the script of an open page needs to
 * go from match to match.
 */
export async function findInPage(request: PageRequest): Promise<ViewPage> {
  const { query, to } = request
  const { dex, row } = await requestedConversation(request)
  const words = (query.get("q") ?? "").trim()
  const name = formatRef(row.ref)
  const store = await dex.store()
  const found = words === "" ? [] : messagesWith(await store.messages(row.ref), words)
  if (query.has("part")) {
    const parts = splitIntoParts(await currentVersions(store, row.ref))
    const items = found.flatMap(({ number, count }) => {
      const part = parts.findIndex((numbers) => numbers.includes(number))
      return part === -1
        ? []
        : html`<li data-number="${number}" data-count="${count}" data-index="${part}" data-from="${parts[part]![0]!}"></li>`
    })
    return { title: "", isPart: true, body: html`<ol>${items}</ol>` }
  }
  const rows = found
    .slice(0, MAX_ROWS)
    .map(
      ({ number, before, match, after }) =>
        html`<li><a href="${to.read(name, number)}"><span class="number">#${number}</span> ${before}<mark>${match}</mark>${after}</a></li>`,
    )
  const summary =
    words === ""
      ? "Type what to look for."
      : `${many(found.length, "message")} with “${words}”${found.length > MAX_ROWS ? `, the first ${MAX_ROWS} shown` : ""}`
  const { title } = conversationOf(row)
  const field = html`<form class="within" action="${to.conversation(name, "find")}"><input type="search" name="q" value="${words}" aria-label="Find in this conversation"></form>`
  return {
    title: `${words} in ${title}`,
    body: html`<section class="within-page"><h1><a href="${to.read(name)}">${title}</a></h1>${field}<div class="found"><p>${summary}</p><ol>${rows}</ol></div></section>`,
  }
}

/** In the order of the messages. A result counts in the message of its call, if the page shows it there. */
function messagesWith(messages: readonly StoredMessage[], words: string): FoundMessage[] {
  const pattern = wordsPattern(words)
  const shownIn = messageShowing(messages)
  const found = new Map<number, FoundMessage>()
  for (const { number, parts } of messages)
    for (const part of parts) {
      const text = messageText({ parts: [part] }, "full")
      const [first, ...others] = text.matchAll(pattern)
      if (!first) continue
      const place = part.type === "tool_result" && part.call_id !== undefined ? shownIn(part.call_id, number) : number
      const known = found.get(place)
      const end = first.index + first[0].length
      found.set(place, {
        number: place,
        before: text.slice(Math.max(0, first.index - CHARS_AROUND), first.index),
        match: first[0],
        after: text.slice(end, end + CHARS_AROUND),
        ...known,
        count: (known?.count ?? 0) + 1 + others.length,
      })
    }
  const positions = new Map(messages.map(({ number }, i) => [number, i]))
  return [...found.values()].sort((a, b) => positions.get(a.number)! - positions.get(b.number)!)
}
