import { formatRef } from "../../core/ref.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import type { Addresses } from "../address.ts"

export type Subagents = { all: ConversationRow[]; byCall: Map<string, ConversationRow> }

export async function subagentsOf(dex: Dex, row: ConversationRow): Promise<Subagents> {
  const store = await dex.store()
  const { rows } = await store.list({
    conversation: row.ref,
    kinds: ["subagent"],
    limit: 500,
    offset: 0,
    inside: dex.project,
  })
  const all = rows.filter(({ parent }) => parent?.id === row.ref.id)
  return { all, byCall: new Map(all.flatMap((one) => (one.parent?.call_id ? [[one.parent.call_id, one]] : []))) }
}

export function subagentHtml(row: ConversationRow, to: Addresses): Html {
  const { title, message_count } = conversationOf(row)
  return html`<a class="subagent" href="${to.read(formatRef(row.ref))}"><b>Subagent</b> ${title} <span class="facts">${many(message_count, "message")}</span></a>`
}
