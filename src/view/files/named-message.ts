import { localMinute } from "../../core/dates.ts"
import { formatRef, parseWholeRef, wholeOf } from "../../core/ref.ts"
import { type Html, html } from "../../render/html/html.ts"
import { messageHtml } from "../../render/html/message-html.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import { agentNamed } from "../../tools/resolve.ts"
import type { Addresses } from "../address.ts"

/** A message that a page of something else quotes. */
export type NamedMessage = { row: ConversationRow; message: StoredMessage; agent: string }

const MOST_CHARS = 3_000

/** Undefined where the ref names none that is there. */
export async function messageNamed(dex: Dex, ref: string): Promise<NamedMessage | undefined> {
  const parsed = parseWholeRef(ref)
  if (parsed?.number === undefined) return undefined
  const store = await dex.store()
  const row = await store.conversation(wholeOf(parsed))
  const [message] = row ? await store.messages(row.ref, [parsed.number]) : []
  if (!row || !message) return undefined
  return { row, message, agent: (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source }
}

/** The message as the reading page shows it, below the way to its conversation. */
export function namedMessageHtml(title: string, { row, message, agent }: NamedMessage, to: Addresses): Html {
  const { number, role, parts, at } = message
  const facts = at === undefined ? [] : [localMinute(at)]
  const ref = formatRef(row.ref)
  const shown = messageHtml(
    { number, role, parts, facts },
    {
      agent,
      root: row.project ?? "",
      outcomes: new Map(),
      mostChars: MOST_CHARS,
      rest: () => html`<a class="rest" href="${to.read(ref, number)}">Show all of it</a>`,
    },
  )
  return html`<section class="stands"><h2>${title}</h2><p><a href="${to.read(ref, number)}">Message ${number} of “${conversationOf(row).title}”</a></p>${shown}</section>`
}
