import { basename } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { findOpenChecks } from "../../answers/left-open.ts"
import { localDay } from "../../core/dates.ts"
import { grouped } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { briefOf, type OpenEnd } from "../../render/brief.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectName, shortDate } from "../../render/words.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { upcomingDeletions } from "../../tools/deletions.ts"
import { conversationOf } from "../../tools/fields.ts"
import { type Addresses, addressOfRef, type PageRequest, type ViewPage } from "../page.ts"
import { emptySection, sectionPage } from "./late-section.ts"

const MAX_CONVERSATIONS = 12
/** The maximum number of messages to read in total. Each conversation is read completely. */
const MAX_MESSAGES = 6_000
const MAX_OPEN_ENDS = 3
const MAX_CHECKS = 5
const MAX_CHARS = 160
const TITLE = "Left open"

/**
 * Labels for the ways in which a conversation broke off. Questions and next steps have no label, because they are not work
 * in progress; failed commands have none, because the page lists them separately.
 */
const END_LABELS: Partial<Record<OpenEnd["kind"], string>> = {
  request: "not answered",
  call: "broke off during",
  todo: "to do",
}

type ReadConversation = { row: ConversationRow; messages: StoredMessage[] }

/** Work that broke off in the newest conversations, and tests or other checks that failed and did not pass afterwards. */
export async function leftOpenPart(request: PageRequest): Promise<ViewPage> {
  const { dex, to } = request
  const conversations = dex.hasHistory() ? await readNewest(dex) : []
  const now = dex.now()
  const brokenOffRows = conversations.flatMap((conversation) => brokenOffHtml(conversation, to, now) ?? [])
  const checks = [...Map.groupBy(conversations, ({ row }) => row.project ?? "")].flatMap(([project, group]) =>
    findOpenChecks(project, group.map(checkInput)).map((check) => ({ project, ...check })),
  )
  const failingRows = checks
    .slice(0, MAX_CHECKS)
    .map(
      ({ project, ref, command, error, times }) =>
        html`<li class="row" tabindex="-1"><a class="title" href="${addressOfRef(to, ref)}"><code>${shortenText(command)}</code></a><p class="line"><span class="bad">failed${times > 1 && ` ${times} times`}</span><span>${projectName(project)}</span>${error !== undefined && html`<span>${shortenText(error)}</span>`}</p></li>`,
    )
  // On a page of its own, the section has no heading above these.
  const heading = (title: string) => (request.query.has("part") ? html`<h3>${title}</h3>` : html`<h2>${title}</h2>`)
  const list = (title: string, items: Html[], hiddenCount: number) =>
    items.length > 0 &&
    html`${heading(title)}<ol class="rows">${items}</ol>${hiddenCount > 0 && html`<p class="note">and ${hiddenCount} more</p>`}`
  if (brokenOffRows.length + checks.length === 0)
    return emptySection(
      request,
      TITLE,
      `Nothing was found in the newest ${many(conversations.length, "conversation")}.`,
    )
  return sectionPage(
    request,
    TITLE,
    html`${list("Broken off", brokenOffRows, 0)}${list("Failed, and did not pass afterwards", failingRows, checks.length - failingRows.length)}<p class="note">In the newest ${many(conversations.length, "conversation")}. <code>dex digest</code> looks at a day or a week.</p>`,
  )
}

/** Reads the person's newest conversations, but only as many as can be read in a short time. */
async function readNewest(dex: Dex): Promise<ReadConversation[]> {
  const store = await dex.store()
  const { rows } = await store.list({ kinds: ["person"], inside: dex.project, limit: MAX_CONVERSATIONS, offset: 0 })
  const conversations: ReadConversation[] = []
  let room = MAX_MESSAGES
  for (const row of rows) {
    room -= row.message_count
    if (room < 0) break
    await nextTurn() // lets other requests run in between
    const messages = await store.messages(row.ref)
    conversations.push({ row, messages: messages.filter(({ superseded, copied }) => !superseded && !copied) })
  }
  return conversations
}

const checkInput = ({ row, messages }: ReadConversation) => ({
  messages,
  refOf: (number: number) => formatRef({ ...row.ref, number }),
  ended_at: row.ended_at ?? 0,
})

function brokenOffHtml({ row, messages }: ReadConversation, to: Addresses, now: number): Html | undefined {
  const openEnds = briefOf(messages).open_ends.filter(({ kind }) => END_LABELS[kind] !== undefined)
  if (openEnds.length === 0) return undefined
  const { id, title, project, date } = conversationOf(row)
  const endItems = openEnds
    .slice(0, MAX_OPEN_ENDS)
    .map(
      ({ kind, number, text }) =>
        html`<li><a href="${to.read(id, number)}"><span class="facts">${END_LABELS[kind]}</span> ${shortenText(text)}</a></li>`,
    )
  const moreItem =
    openEnds.length > MAX_OPEN_ENDS && html`<li class="facts">and ${openEnds.length - MAX_OPEN_ENDS} more</li>`
  return html`<li class="row" tabindex="-1"><a class="title" href="${to.read(id)}">${title}</a><p class="line"><time datetime="${date}">${shortDate(date, now)}</time><span>${projectName(project)}</span></p><ul class="ends">${endItems}${moreItem}</ul></li>`
}

function shortenText(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim()
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS)}…` : line
}

const MAX_DELETED_SHOWN = 5
/** The maximum number of transcripts that are sorted by the time of their deletion. */
const MAX_SORTED_TRANSCRIPTS = 500
const DELETED_TITLE = "Deleted soon"

/** The conversations whose transcripts Claude Code deletes within a week. dex keeps its copies. */
export async function deletedSoonPart(request: PageRequest): Promise<ViewPage> {
  const { dex, to } = request
  const deletions = await upcomingDeletions(dex)
  if (!deletions || deletions.dueCount === 0)
    return emptySection(
      request,
      DELETED_TITLE,
      `${deletions ? `Claude Code deletes transcripts after ${deletions.days} days. It will delete none within a week. ` : ""}dex keeps what it has read.`,
    )
  const { days, dueCount, unreadCount, transcripts } = deletions
  // A transcript is named after its conversation. Transcripts of private projects are counted, but not listed.
  const refs = transcripts.map(({ path }) => ({ source: "claude_code", id: basename(path, ".jsonl") }))
  const store = await dex.store()
  const { rows, total } = await store.list({
    among: refs,
    kinds: ["person"],
    inside: dex.project,
    limit: MAX_SORTED_TRANSCRIPTS,
    offset: 0,
  })
  const deletionTimes = new Map(
    transcripts.map((transcript) => [basename(transcript.path, ".jsonl"), transcript.deletedAt]),
  )
  const text =
    unreadCount === 0
      ? `Claude Code deletes a transcript ${days} days after its last change. Within a week, it will delete ${many(dueCount, "transcript")}. dex has a copy of each.`
      : `Claude Code deletes a transcript ${days} days after its last change. Within a week, it will delete ${many(dueCount, "transcript")}. dex has not read ${grouped(unreadCount)} of these completely. Run \`dex sync\` to read them.`
  const deletionTime = (row: ConversationRow) => deletionTimes.get(row.ref.id) ?? Number.POSITIVE_INFINITY
  const shownRows = rows.toSorted((a, b) => deletionTime(a) - deletionTime(b)).slice(0, MAX_DELETED_SHOWN)
  const items = shownRows.map((row) => {
    const { id, title } = conversationOf(row)
    const deletedAt = deletionTimes.get(row.ref.id)
    return html`<li class="row" tabindex="-1"><a class="title" href="${to.read(id)}">${title}</a><p class="line">${deletedAt !== undefined && html`<span>${deletedAt <= dex.now() ? "any time now" : `on ${localDay(deletedAt)}`}</span>`}</p></li>`
  })
  const moreNote =
    total > shownRows.length && html`<p class="note">and ${many(total - shownRows.length, "more conversation")}</p>`
  return sectionPage(
    request,
    DELETED_TITLE,
    html`<p class="facts">${text}</p><ol class="rows">${items}</ol>${moreNote}`,
  )
}
