import { messageText } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { StoredMessage } from "../../store/history/store.ts"
import { conversationOf } from "../../tools/fields.ts"
import type { PageRequest, ViewPage } from "../page.ts"
import { conversationAsked } from "./asked.ts"

const MOST_ROWS = 200
const AROUND = 80

/** Every message of a conversation that has these letters, whatever of it is on the page. */
export async function withinPage(request: PageRequest): Promise<ViewPage> {
  const { query, to } = request
  const { dex, row } = await conversationAsked(request)
  const words = (query.get("q") ?? "").trim()
  const name = formatRef(row.ref)
  const messages = words === "" ? [] : await (await dex.store()).messages(row.ref)
  const found = messages.flatMap((message) => foundIn(message, words))
  const rows = found
    .slice(0, MOST_ROWS)
    .map(
      ({ number, role, snippet }) =>
        html`<li><a href="${to.read(name, number)}" data-number="${number}"><span class="number">#${number}</span> <span class="role">${role}</span> ${snippet}</a></li>`,
    )
  const count =
    words === ""
      ? "Type what to look for."
      : `${many(found.length, "message")} with “${words}”${found.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : ""}`
  const list = html`<div class="found"><p>${count}</p><ol>${rows}</ol></div>`
  if (query.has("part")) return { title: "", isPart: true, body: list }
  const { title } = conversationOf(row)
  const field = html`<form class="within" action="${to.conversation(name, "find")}"><input type="search" name="q" value="${words}" aria-label="Find in this conversation"></form>`
  return {
    title: `${words} in ${title}`,
    body: html`<section class="within-page"><h1><a href="${to.read(name)}">${title}</a></h1>${field}${list}</section>`,
  }
}

function foundIn(message: StoredMessage, words: string): { number: number; role: string; snippet: Html }[] {
  const text = messageText(message, "full")
  const at = text.toLowerCase().indexOf(words.toLowerCase())
  if (at === -1) return []
  const end = at + words.length
  const snippet = html`${text.slice(Math.max(0, at - AROUND), at)}<mark>${text.slice(at, end)}</mark>${text.slice(end, end + AROUND)}`
  return [{ number: message.number, role: message.role, snippet }]
}
