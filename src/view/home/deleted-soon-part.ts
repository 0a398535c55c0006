import { basename } from "node:path"
import { localDay } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import { deletionsAhead } from "../../tools/deletions.ts"
import { conversationOf } from "../../tools/fields.ts"
import type { PageRequest, ViewPage } from "../page.ts"
import { sectionPage } from "./late-section.ts"

const SHOWN = 5
/** So many are put in the order in which they go. */
const MOST_ORDERED = 500
const TITLE = "Deleted soon"

/** The conversations whose transcript Claude Code deletes within a week. What dex has read stays. */
export async function deletedSoonPart(request: PageRequest): Promise<ViewPage> {
  const { dex, to } = request
  const ahead = await deletionsAhead(dex)
  if (!ahead || ahead.soon === 0)
    return sectionPage(
      request,
      TITLE,
      html`<p class="none">${ahead ? `Claude Code deletes transcripts after ${ahead.days} days, and none within a week. ` : ""}What dex has read stays.</p>`,
    )
  const { days, soon, unread, transcripts } = ahead
  // A transcript is named after its conversation. A private project's are counted, not named.
  const refs = transcripts.map(({ path }) => ({ source: "claude_code", id: basename(path, ".jsonl") }))
  const store = await dex.store()
  const { rows, total } = await store.list({
    among: refs,
    kinds: ["person"],
    inside: dex.project,
    limit: MOST_ORDERED,
    offset: 0,
  })
  const deletedAt = new Map(transcripts.map((one) => [basename(one.path, ".jsonl"), one.deletedAt]))
  const said =
    unread === 0
      ? `Claude Code deletes a transcript ${days} days after its last change, and ${grouped(soon)} of them within a week. dex has a copy of each.`
      : `Claude Code deletes a transcript ${days} days after its last change, and ${grouped(soon)} of them within a week. dex has not read ${grouped(unread)} of these to the end yet: \`dex sync\` does.`
  const goesAt = (row: ConversationRow) => deletedAt.get(row.ref.id) ?? Number.POSITIVE_INFINITY
  const shown = rows.toSorted((a, b) => goesAt(a) - goesAt(b)).slice(0, SHOWN)
  const items = shown.map((row) => {
    const { id, title } = conversationOf(row)
    const at = deletedAt.get(row.ref.id)
    return html`<li class="row" tabindex="-1"><a class="title" href="${to.read(id)}">${title}</a><p class="line">${at !== undefined && html`<span>${at <= dex.now() ? "any time now" : `on ${localDay(at)}`}</span>`}</p></li>`
  })
  const more = total > shown.length && html`<p class="note">and ${many(total - shown.length, "more conversation")}</p>`
  return sectionPage(request, TITLE, html`<p class="facts">${said}</p><ol class="rows">${items}</ol>${more}`)
}
