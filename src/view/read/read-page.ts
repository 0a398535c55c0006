import { isoDate, localMinute } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import { outcomesOf } from "../../render/fold.ts"
import { type Html, html } from "../../render/html/html.ts"
import { messageHtml, type PageMessage, type PageOptions } from "../../render/html/message-html.ts"
import { many, projectName, shortPath, when } from "../../render/words.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import { agentNamed, resolveConversation } from "../../tools/resolve.ts"
import { paidSettings } from "../../tools/usage/payments.ts"
import { messageState } from "../../tools/view.ts"
import { actionForm } from "../actions.ts"
import type { Addresses } from "../address.ts"
import type { PageRequest, ViewPage } from "../page.ts"
import { type ConversationShape, shapeOf } from "./shape.ts"
import { factsHtml, outlineHtml } from "./sides.ts"

/** How many messages are one part of the page. */
const AT_ONCE = 100
/** Of an output that is longer only the beginning is on the page; all of it has an address. */
const MOST_CHARS = 6_000

/** A conversation, from the message that was asked for on. */
export async function readPage(request: PageRequest): Promise<ViewPage> {
  const { query, to, dex } = request
  const read = await conversationAsked(request)
  const { row, shape } = read
  const parts = partsOf(shape)
  const at = Number(query.get("at") ?? query.get("from") ?? 0)
  const index = Math.max(0, at === 0 ? 0 : partWith(parts, at))
  const head = conversationOf(row)
  const subagents = await subagentsOf(dex, row)
  const messages = await partHtml(read, parts, index, to, subagents)
  const name = formatRef(row.ref)
  const body = html`<div class="reading" data-ref="${name}">
<nav class="outline" aria-label="Outline"><details open><summary>Outline</summary>${outlineHtml(shape, (number) => addressIn(name, parts, number, to))}</details></nav>
<div class="conversation">
<header class="title"><h1>${head.title}</h1>${factLine(dex, row, read.agent, shape)}${tools(row, name, request)}</header>
<form class="within" action="${to.conversation(name, "find")}"><input type="search" name="q" placeholder="Find in this conversation" aria-label="Find in this conversation" autocomplete="off"></form>
<div class="messages">${messages}</div>
</div>
<aside class="facts" aria-label="Facts"><details open><summary>Facts</summary>${factsHtml(row, shape, subagents, (number) => addressIn(name, parts, number, to), to)}</details></aside>
</div>`
  return { title: head.title, body }
}

/** One part of it, for a page that is open. */
export async function readPart(request: PageRequest): Promise<ViewPage> {
  const read = await conversationAsked(request)
  const parts = partsOf(read.shape)
  const from = request.query.get("from")
  const index = from === "last" ? parts.length - 1 : partWith(parts, Number(from))
  const subagents = await subagentsOf(request.dex, read.row)
  return { title: "", isPart: true, body: await partHtml(read, parts, index, request.to, subagents) }
}

export type ConversationRead = {
  dex: Dex
  row: ConversationRow
  shape: ConversationShape
  agent: string
}

export async function conversationAsked({ dex, params }: PageRequest): Promise<ConversationRead> {
  const { row } = await resolveConversation(dex, { id: params.ref ?? "" })
  const shape = await shapeOf(await dex.store(), row.ref, paidSettings(dex).book)
  return { dex, row, shape, agent: (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source }
}

function partsOf({ versions }: ConversationShape): number[][] {
  const numbers = [...versions.keys()]
  const parts: number[][] = []
  for (let i = 0; i < numbers.length; i += AT_ONCE) parts.push(numbers.slice(i, i + AT_ONCE))
  return parts.length === 0 ? [[]] : parts
}

function partWith(parts: number[][], number: number): number {
  const found = parts.findIndex((numbers) => numbers.includes(number))
  if (found === -1) throw new DexError("no_message", `There is no message ${number} in this conversation.`)
  return found
}

/** A message that is on the page already needs no other page. */
function addressIn(ref: string, parts: number[][], number: number, to: Addresses): string {
  return parts.length === 1 ? `#m${number}` : to.read(ref, number)
}

async function partHtml(
  read: ConversationRead,
  parts: number[][],
  index: number,
  to: Addresses,
  subagents: Subagents,
): Promise<Html> {
  const { dex, row, shape } = read
  const numbers = parts[index]!
  const wanted = new Set([...numbers, ...answersElsewhere(numbers, shape)])
  const stored = await (await dex.store()).messages(row.ref, [...wanted])
  const name = formatRef(row.ref)
  const outcomes = outcomesOf(stored)
  // A call that stands on an earlier part shows its result there.
  for (const [id, outcome] of outcomes) outcome.madeIn ??= shape.calls.get(id)?.madeIn
  const options: PageOptions = {
    agent: read.agent,
    root: row.project ?? "",
    outcomes,
    mostChars: MOST_CHARS,
    subagentOf: (id) => {
      const found = subagents.byCall.get(id)
      return found && subagentHtml(found, to)
    },
    rest: (number, part) =>
      html`<a class="rest" href="${to.conversation(name, `whole/${number}/${part}`)}">Show all of it</a>`,
    beside: (number) =>
      html`<span class="ways"><a href="${to.conversation(name, "raw", { at: number })}" title="The record that this was read from">raw</a><a href="${to.read(name, number)}" title="The address of this message">#${number}</a></span>`,
  }
  const own = new Set(numbers)
  const shown = withModels(stored.filter(({ number }) => own.has(number))).map((message) =>
    messageHtml(message, options),
  )
  const link = (at: number, rel: "prev" | "next", says: string) => {
    const to_ = parts[at]
    return (
      to_ &&
      html`<a class="more" rel="${rel}" href="${to.to(`c/${encodeURIComponent(name)}`, { from: to_[0] })}" data-part="${to.conversation(name, "part", { from: to_[0] })}">${says}: ${to_[0]} to ${to_.at(-1)}</a>`
    )
  }
  return html`<section class="part" data-from="${numbers[0] ?? 0}" data-to="${numbers.at(-1) ?? 0}"${index === parts.length - 1 && html` data-last`}>${link(index - 1, "prev", "Earlier messages")}${shown.filter((one) => one !== undefined)}${link(index + 1, "next", "Later messages")}</section>`
}

/** The messages that answer calls of these, and stand on a later part. */
function answersElsewhere(numbers: number[], { calls }: ConversationShape): number[] {
  const own = new Set(numbers)
  return [...calls.values()].flatMap(({ madeIn, answeredIn }) =>
    madeIn !== undefined && own.has(madeIn) && answeredIn !== undefined && !own.has(answeredIn) ? [answeredIn] : [],
  )
}

/** The model is said where it is another one than before. */
function withModels(messages: StoredMessage[]): PageMessage[] {
  let last: string | undefined
  return messages.map((message) => {
    const { number, role, parts, at, model } = message
    const { state } = messageState(message)
    const isNew = model !== undefined && model !== last
    last = model ?? last
    const facts = [at === undefined ? "" : localMinute(at), isNew ? model : "", state ?? ""].filter((one) => one !== "")
    return { number, role, parts, facts }
  })
}

export type Subagents = { all: ConversationRow[]; byCall: Map<string, ConversationRow> }

async function subagentsOf(dex: Dex, row: ConversationRow): Promise<Subagents> {
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

function subagentHtml(row: ConversationRow, to: Addresses): Html {
  const { title, message_count } = conversationOf(row)
  return html`<a class="subagent" href="${to.read(formatRef(row.ref))}"><b>Subagent</b> ${title} <span class="facts">${many(message_count, "message")}</span></a>`
}

function factLine(dex: Dex, row: ConversationRow, agent: string, shape: ConversationShape): Html {
  const { date, message_count, project } = conversationOf(row)
  const home = dex.machine.home
  const last = shape.spent.at(-1)
  return html`<p class="line"><span class="agent">${agent}</span><span title="${shortPath(project, home)}">${projectName(project)}</span>${row.git_branch && html`<span>${row.git_branch}</span>`}<time datetime="${date}">${when(date)}</time><span>${many(message_count, "message")}</span>${last && last.cost > 0 && html`<span>$${last.cost.toFixed(2)}</span>`}${row.archived && html`<span class="kept">kept by dex only</span>`}${row.started_at !== undefined && row.ended_at !== undefined && html`<span>${duration(row.ended_at - row.started_at)}</span>`}</p>`
}

function duration(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes < 60) return `${minutes}\u00a0min`
  return minutes < 1_440 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.round(minutes / 1_440)} days`
}

function tools(row: ConversationRow, name: string, { to, actionToken }: PageRequest): Html {
  const isSpoken = row.kind !== "document"
  const { project } = row
  const copied = (title: string, command: string) =>
    html`<button type="button" data-copy="${command}" title="Copy: ${command}">${title}</button>`
  const act = (path: string, fields: Record<string, string>, inner: Html) =>
    actionForm(to.to(`do/${path}`), actionToken, fields, inner)
  const note =
    project !== undefined &&
    act(
      "note",
      { project, ref: name },
      html`<input type="text" name="text" required placeholder="A note for this project" aria-label="A note for this project"><button>Keep</button>`,
    )
  const more = html`<details class="more-tools"><summary>More</summary><div>${note}<a href="${to.conversation(name, "raw")}">Raw records</a>${project !== undefined && act("private", { project }, html`<button>Make this project private</button>`)}${isSpoken && act("forget", { ref: name }, html`<button class="danger">Forget…</button>`)}</div></details>`
  return html`<div class="tools">${isSpoken && html`${copied("Resume", `dex resume ${name}`)}${copied("Hand over", `dex handover ${name}`)}`}${copied("Copy ref", name)}<a href="${to.conversation(name, "export.html")}" download>HTML</a><a href="${to.conversation(name, "export.md")}" download>Markdown</a>${more}</div>`
}

/** All of one part of one message. */
export async function wholePart(request: PageRequest): Promise<ViewPage> {
  const { params, to } = request
  const { dex, row } = await conversationAsked(request)
  const number = Number(params.number)
  const [message] = await (await dex.store()).messages(row.ref, [number])
  const part = message?.parts[Number(params.part)]
  if (!part) throw new DexError("no_message", "There is no such part of this conversation.")
  const name = formatRef(row.ref)
  const title = `Message ${number} of ${conversationOf(row).title}`
  const texts = part.type === "tool_call" ? [part.text, ...(await answerTo(dex, row, part.call_id))] : [part.text]
  const body = html`<section class="whole"><p><a href="${to.read(name, number)}">Back to message ${number}</a>${message?.at !== undefined && html` · ${isoDate(message.at)}`}</p>${texts.map((text) => html`<pre class="output">${text}</pre>`)}</section>`
  return { title, body }
}

async function answerTo(dex: Dex, row: ConversationRow, callId: string | undefined): Promise<string[]> {
  if (callId === undefined) return []
  const shape = await shapeOf(await dex.store(), row.ref, paidSettings(dex).book)
  const answered = shape.calls.get(callId)?.answeredIn
  if (answered === undefined) return []
  const messages = await (await dex.store()).messages(row.ref, [answered])
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" && part.call_id === callId ? [part.text] : [])),
  )
}
