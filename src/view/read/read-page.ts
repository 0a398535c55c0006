import { STAR_TAG } from "../../core/conversation.ts"
import { localMinute } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import { type ToolResult, withoutRoot } from "../../render/fold.ts"
import { diffHtml } from "../../render/html/diff-html.ts"
import { type Html, html } from "../../render/html/html.ts"
import { fileChangesHtml } from "../../render/html/message-html.ts"
import { many, projectName, shortPath, when } from "../../render/words.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import { priceSettings } from "../../tools/usage/payments.ts"
import { actionForm } from "../actions.ts"
import type { Addresses, PageRequest, ViewPage } from "../page.ts"
import { type RequestedConversation, requestedConversation } from "../page.ts"
import { readWithResults, type Subagents, subagentsOf } from "./nearby.ts"
import { partHtml, partWithMessage, splitIntoParts } from "./part-html.ts"
import { type ConversationShape, currentVersions, shapeOf, versionsOfUnread } from "./shape.ts"
import { factsHtml, outlineHtml } from "./sides.ts"

/** A conversation, starting with the part that contains the requested message. */
export async function readPage(request: PageRequest): Promise<ViewPage> {
  const { query, to, dex } = request
  const conversation = await requestedConversation(request)
  const { row } = conversation
  const number = Number(query.get("at") ?? query.get("from") ?? 0)
  const quickVersions = await versionsOfUnread(await dex.store(), row)
  const shape = quickVersions ? undefined : await completeShape(conversation)
  const versions = quickVersions ?? shape!.versions
  const parts = splitIntoParts(versions)
  const index = number === 0 ? 0 : partWithMessage(parts, number)
  const head = conversationOf(row)
  const subagents = await subagentsOf(dex, row)
  const messages = await partHtml(conversation, versions, [parts, index], subagents, to)
  const name = formatRef(row.ref)
  const [outline, facts] = shape
    ? [outlineSide(request, conversation, shape), factsSide(request, conversation, shape, subagents)]
    : [
        html`<nav class="outline" aria-label="Outline"${lateAttributes(to.conversation(name, "outline"), "Outline")}</nav>`,
        html`<aside class="facts" aria-label="Facts"${lateAttributes(to.conversation(name, "facts"), "Facts")}</aside>`,
      ]
  const body = html`<div class="reading" data-ref="${name}">
${outline}
<div class="conversation">
<header class="title"><h1>${head.title}</h1>${factLine(request, row, conversation.agent, shape)}${toolsHtml(row, name, request)}</header>
<form class="within" action="${to.conversation(name, "find")}"><input type="search" name="q" placeholder="Find in this conversation" aria-label="Find in this conversation" autocomplete="off"></form>
<div class="messages">${messages}</div>
</div>
${facts}
</div>`
  return { title: head.title, body }
}

/** The rest of the opening tag of a side that the page's script loads later, and its content until then: a link. */
function lateAttributes(address: string, label: string): Html {
  return html` data-late="${address}?part=1"><a href="${address}">${label}</a>`
}

/** One part of a conversation, for a page that is open. */
export async function readPart(request: PageRequest): Promise<ViewPage> {
  const conversation = await requestedConversation(request)
  const versions = await currentVersions(await request.dex.store(), conversation.row.ref)
  const parts = splitIntoParts(versions)
  const from = request.query.get("from")
  const index = from === "last" ? parts.length - 1 : partWithMessage(parts, Number(from))
  const subagents = await subagentsOf(request.dex, conversation.row)
  return {
    title: "",
    isPart: true,
    body: await partHtml(conversation, versions, [parts, index], subagents, request.to),
  }
}

/** The outline of a long conversation. It is loaded after the conversation itself. */
export async function outlinePart(request: PageRequest): Promise<ViewPage> {
  const conversation = await requestedConversation(request)
  return sidePage(
    request,
    conversation,
    "Outline",
    outlineSide(request, conversation, await completeShape(conversation)),
  )
}

export async function factsPart(request: PageRequest): Promise<ViewPage> {
  const conversation = await requestedConversation(request)
  const subagents = await subagentsOf(request.dex, conversation.row)
  return sidePage(
    request,
    conversation,
    "Facts",
    factsSide(request, conversation, await completeShape(conversation), subagents),
  )
}

function sidePage({ query, to }: PageRequest, { row }: RequestedConversation, label: string, side: Html): ViewPage {
  if (query.has("part")) return { title: "", isPart: true, body: side }
  const { title } = conversationOf(row)
  return {
    title: `${label} of ${title}`,
    body: html`<section class="side-page"><h1><a href="${to.read(formatRef(row.ref))}">${title}</a></h1>${side}</section>`,
  }
}

async function completeShape({ dex, row }: RequestedConversation): Promise<ConversationShape> {
  return shapeOf(await dex.store(), row.ref, priceSettings(dex).book)
}

function outlineSide({ to }: PageRequest, { row }: RequestedConversation, shape: ConversationShape): Html {
  return html`<nav class="outline" aria-label="Outline"><details open><summary>Outline</summary>${outlineHtml(shape, addressesIn(row, shape, to))}</details></nav>`
}

function factsSide(
  { to }: PageRequest,
  { row }: RequestedConversation,
  shape: ConversationShape,
  subagents: Subagents,
): Html {
  return html`<aside class="facts" aria-label="Facts"><details open><summary>Facts</summary>${factsHtml(row, shape, subagents, addressesIn(row, shape, to), to)}</details></aside>`
}

/** The addresses of messages: if all messages are on one page, an anchor is enough. */
function addressesIn(
  { ref }: ConversationRow,
  { versions }: ConversationShape,
  to: Addresses,
): (number: number) => string {
  const name = formatRef(ref)
  const isOnePage = splitIntoParts(versions).length === 1
  return (number) => (isOnePage ? `#m${number}` : to.read(name, number))
}

function factLine(
  { dex, to }: PageRequest,
  row: ConversationRow,
  agent: string,
  shape: ConversationShape | undefined,
): Html {
  const { date, message_count, project } = conversationOf(row)
  const home = dex.machine.home
  const total = shape?.spent.at(-1)
  return html`<p class="line">${row.tags?.map((tag) => tag !== STAR_TAG && html`<a class="tag" href="${to.find({ q: `tag:${tag}` })}">#${tag}</a>`)}<span class="agent">${agent}</span><span title="${shortPath(project, home)}">${projectName(project)}</span>${row.git_branch && html`<span>${row.git_branch}</span>`}<time datetime="${date}">${when(date)}</time><span>${many(message_count, "message")}</span>${total && total.cost > 0 && html`<span>$${total.cost.toFixed(2)}</span>`}${row.archived && html`<span class="kept">kept by dex only</span>`}${row.started_at !== undefined && row.ended_at !== undefined && html`<span>${durationText(row.ended_at - row.started_at)}</span>`}</p>`
}

function durationText(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes < 60) return `${minutes}\u00a0min`
  return minutes < 1_440 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.round(minutes / 1_440)} days`
}

function toolsHtml(row: ConversationRow, name: string, { to, actionToken }: PageRequest): Html {
  const isConversation = row.kind !== "document"
  const { project } = row
  const copyButton = (title: string, command: string) =>
    html`<button type="button" data-copy="${command}" title="Copy: ${command}">${title}</button>`
  const actionButton = (path: string, fields: Record<string, string>, inner: Html) =>
    actionForm(to.path(`do/${path}`), actionToken, fields, inner)
  const note =
    project !== undefined &&
    actionButton(
      "note",
      { project, ref: name },
      html`<input type="text" name="text" required placeholder="A note for this project" aria-label="A note for this project"><button>Keep</button>`,
    )
  const isStarred = row.tags?.includes(STAR_TAG) === true
  const starButton = actionButton(
    "mark",
    { ref: name, star: isStarred ? "no" : "yes" },
    html`<button>${isStarred ? "★ Starred" : "☆ Star"}</button>`,
  )
  const marks = actionButton(
    "mark",
    { ref: name },
    html`<input type="text" name="title" value="${row.recorded_title === undefined ? "" : row.title?.text}" placeholder="A title of your own" aria-label="A title of your own"><input type="text" name="tags" value="${otherTags(row)}" placeholder="Tags" aria-label="Tags"><button>Save</button>`,
  )
  const moreTools = html`<details class="more-tools"><summary>More</summary><div>${isConversation && marks}${note}<a href="${to.conversation(name, "raw")}">Raw records</a>${project !== undefined && actionButton("private", { project }, html`<button>Make this project private…</button>`)}${isConversation && actionButton("forget", { ref: name }, html`<button class="danger">Forget…</button>`)}</div></details>`
  return html`<div class="tools">${isConversation && html`${starButton}${copyButton("Copy resume command", `dex resume ${name}`)}${copyButton("Hand over", `dex handover ${name}`)}`}${copyButton("Copy ref", name)}<a href="${to.conversation(name, "export.html")}" download>HTML</a><a href="${to.conversation(name, "export.md")}" download>Markdown</a>${moreTools}</div>`
}

/** The tags without the star, as they are typed. */
function otherTags({ tags = [] }: ConversationRow): string {
  return tags.filter((tag) => tag !== STAR_TAG).join(" ")
}

/** The complete text of one part of a message. A call is followed by its result, or by the changes that it made. */
export async function completePart(request: PageRequest): Promise<ViewPage> {
  const { params, to } = request
  const { dex, row } = await requestedConversation(request)
  const number = Number(params.number)
  const [message] = await (await dex.store()).messages(row.ref, [number])
  const part = message?.parts[Number(params.part)]
  if (!part) throw new DexError("no_message", "There is no such part of this conversation.")
  const name = formatRef(row.ref)
  const title = `Message ${number} of ${conversationOf(row).title}`
  const result = part.type === "tool_call" ? await resultOf(dex, row, number, part.call_id) : part
  const hunks = (result?.type === "tool_result" && result.hunks) || []
  const changes = [...Map.groupBy(hunks, ({ path }) => path)].map(([path, fileHunks]) =>
    fileChangesHtml(withoutRoot(path, row.project ?? ""), fileHunks, diffHtml(fileHunks)),
  )
  const texts = changes.length > 0 ? [] : part === result || !result ? [part.text] : [part.text, result.text]
  const body = html`<section class="whole"><h1><a href="${to.read(name, number)}">${title}</a></h1><p class="line">${message?.at !== undefined && localMinute(message.at)}</p>${changes}${texts.map((text) => html`<pre class="output">${text}</pre>`)}</section>`
  return { title, body }
}

async function resultOf(
  dex: Dex,
  { ref }: ConversationRow,
  number: number,
  callId: string | undefined,
): Promise<ToolResult | undefined> {
  if (callId === undefined) return undefined
  const store = await dex.store()
  const { outcomes } = await readWithResults(store, ref, [...(await currentVersions(store, ref)).keys()], [number])
  return outcomes.get(callId)?.result
}
