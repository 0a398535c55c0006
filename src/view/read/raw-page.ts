import { isoDate } from "../../core/dates.ts"
import { parseObject } from "../../core/record.ts"
import { formatRef } from "../../core/ref.ts"
import { highlightedHtml } from "../../render/html/code-html.ts"
import { html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import type { PageRequest, ViewPage } from "../page.ts"
import { requestedConversation } from "../page.ts"

const RECORDS_PER_PAGE = 20
const MAX_CHARS = 20_000

/** The raw records of a conversation as dex stores them: redacted, and without the bytes of images. */
export async function rawPage(request: PageRequest): Promise<ViewPage> {
  const { query, to } = request
  const { dex, row } = await requestedConversation(request)
  const name = formatRef(row.ref)
  const records = await recordsOf(dex, row)
  const number = query.get("at")
  const from = number === null ? Number(query.get("from") ?? 0) : await recordIndexOf(dex, row, Number(number), records)
  const items = records.slice(from, from + RECORDS_PER_PAGE).map((record, i) => {
    const parsed = parseObject(record)
    const text = (parsed ? JSON.stringify(parsed, null, 2) : record).slice(0, MAX_CHARS)
    const omitted = record.length - MAX_CHARS
    return html`<li value="${from + i + 1}"><pre class="code">${highlightedHtml(text, "json")}${omitted > 0 && `\n… ${omitted} more characters`}</pre></li>`
  })
  const stepLink = (start: number, label: string) =>
    start >= 0 &&
    start < records.length &&
    start !== from &&
    html`<a class="more" href="${to.conversation(name, "raw", { from: start })}">${label}</a>`
  const { title } = conversationOf(row)
  const summary =
    records.length === 0
      ? "dex has no raw records of this conversation."
      : `${many(records.length, "record")}, redacted, from ${row.path}`
  return {
    title: `Records of ${title}`,
    body: html`<section class="raw"><h1><a href="${to.read(name)}">${title}</a></h1><p>${summary}</p>${stepLink(Math.max(0, from - RECORDS_PER_PAGE), "Earlier records")}<ol>${items}</ol>${stepLink(from + RECORDS_PER_PAGE, "Later records")}</section>`,
  }
}

async function recordsOf(dex: Dex, row: ConversationRow): Promise<string[]> {
  const store = await dex.storeToWrite()
  const { source } = row.ref
  const records: string[] = []
  for (const [key, { path }] of await store.knownUnits(source)) {
    if (path !== row.path) continue
    for (const kind of ["live", "left"] as const)
      records.push(...(await store.rawLines(source, key, kind, { onlyReadable: true })))
  }
  return records
}

/** The index of the first record with the message's time; 0 if there is none. */
async function recordIndexOf(dex: Dex, row: ConversationRow, number: number, records: string[]): Promise<number> {
  const [message] = await (await dex.store()).messages(row.ref, [number])
  if (message?.at === undefined) return 0
  const times = [isoDate(message.at), String(message.at)]
  return Math.max(
    0,
    records.findIndex((record) => times.some((time) => record.includes(time))),
  )
}
