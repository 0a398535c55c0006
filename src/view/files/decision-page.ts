import { isoDate, localMinute } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { conversationRefOf, formatRef, parseCompleteRef, type Ref, refFrom } from "../../core/ref.ts"
import { highlightedHtml } from "../../render/html/code-html.ts"
import { type Html, html } from "../../render/html/html.ts"
import { markdownHtml } from "../../render/html/markdown-html.ts"
import { messageHtml } from "../../render/html/message-html.ts"
import { many, projectName, shortPath, when } from "../../render/words.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { DecisionKind, KnownDecision } from "../../store/knowledge/decisions.ts"
import type { KnownFix } from "../../store/knowledge/fixes.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import { updatedKnowledge } from "../../tools/learned.ts"
import { agentNamed } from "../../tools/resolve.ts"
import { type Addresses, addressOfRef, type PageRequest, type ViewPage } from "../page.ts"

const MAX_DECISIONS = 20
const MAX_TITLE_LENGTH = 140

const KIND_LABELS: Record<DecisionKind, string> = {
  said: "said in the conversation",
  answer: "chosen when the agent asked",
  plan: "an approved plan",
  adr: "a record in a document",
  breaking: "a commit that breaks something",
  revert: "a commit that reverts another one",
  note: "a saved note",
}
const ORIGIN_LABELS: Record<KnownDecision["origin"], string> = {
  person: "in your words",
  agent: "in the agent's words",
  document: "in a document's words",
  commit: "in a commit's words",
}

/** The decisions that a message or a commit states, the decisions that they reversed, and those that reversed them. */
export async function decisionPage({ dex, params, to }: PageRequest): Promise<ViewPage> {
  const ref = params.id ?? ""
  if (!dex.hasHistory())
    throw new DexError("not_found", "No conversations have been read yet. Run `dex sync` in a terminal.")
  const { knowledge, notes, hidden } = await updatedKnowledge(dex)
  const filter = { except: hidden, with_commits: true, limit: MAX_DECISIONS }
  const { decisions, total } = knowledge.decisions.knownDecisions({ ...filter, stated_in: ref })
  const [first] = decisions
  if (!first) throw new DexError("not_found", `No decision is known in ${ref}. ${notes.join(" ")}`.trim())
  const reversedDecisions = knowledge.decisions.knownDecisions({
    ...filter,
    taken_back_by: decisions.map(({ key }) => key),
  })
  const message = await findMessage(dex, ref)
  const title = titleOf(first.quote)
  const { project, at } = first
  const body = html`<div class="fact-page"><header class="title"><p class="kind">${decisions.every((decision) => decision.reversed_by) ? "Decision, reversed" : "Decision"}</p><h1>${title}</h1><p class="line">${project !== undefined && html`<span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span>`}${at !== undefined && html`<time datetime="${isoDate(at)}">${when(isoDate(at))}</time>`}<span>${KIND_LABELS[first.kind]}</span><span>${ORIGIN_LABELS[first.origin]}</span></p></header>${decisions.map((decision) => quoteHtml(decision, title, to))}${moreNote(total - decisions.length, "in the same place")}${decisionList("Reverses", reversedDecisions.decisions, to)}${moreNote(reversedDecisions.total - reversedDecisions.decisions.length, "that it reverses")}${message ? namedMessageHtml("Source", message, to) : commitHtml(first, to)}${filesHtml(first, to)}${notes.map((note) => html`<p class="note">${note}</p>`)}</div>`
  return { title, body }
}

function titleOf(quote: string): string {
  const [line = ""] = quote.trim().split("\n", 1)
  return line.length > MAX_TITLE_LENGTH ? `${line.slice(0, MAX_TITLE_LENGTH)}…` : line
}

/** The quote, if the title does not show all of it, and the decision that reversed it. */
function quoteHtml({ quote, reversed_by: successor }: KnownDecision, title: string, to: Addresses): Html {
  const quoteBlock = quote.trim() !== title && html`<blockquote class="said">${markdownHtml(quote)}</blockquote>`
  return html`${quoteBlock && html`<section class="quote">${quoteBlock}</section>`}${successor && decisionList("Reversed by", [successor], to)}`
}

function moreNote(count: number, placeText: string): Html | undefined {
  return count > 0 ? html`<p class="note">${count} more ${placeText}.</p>` : undefined
}

type QuotedDecision = Pick<KnownDecision, "ref" | "quote" | "at">

function decisionList(title: string, decisions: readonly QuotedDecision[], to: Addresses): Html | undefined {
  if (decisions.length === 0) return undefined
  const rows = decisions.map(
    ({ ref, quote, at }) =>
      html`<li class="row" tabindex="-1"><a class="title" href="${to.decision(ref)}">${titleOf(quote)}</a> <span class="under">${at !== undefined && when(isoDate(at))}</span></li>`,
  )
  return html`<section class="chain"><h2>${title}</h2><ul>${rows}</ul></section>`
}

function commitHtml({ ref, project }: KnownDecision, to: Addresses): Html | undefined {
  const [, hash] = /^git:([0-9a-f]+)$/.exec(ref) ?? []
  if (hash === undefined || project === undefined) return undefined
  return html`<section><h2>Source</h2><p><a href="${to.commit(project, hash)}">Commit ${hash.slice(0, 8)}</a></p></section>`
}

function filesHtml({ files, project }: KnownDecision, to: Addresses): Html | undefined {
  if (files.length === 0) return undefined
  const items = files.map(
    (path) =>
      html`<li class="row" tabindex="-1">${project === undefined ? html`<span class="title">${path}</span>` : html`<a class="title" href="${to.file(project, path)}">${path}</a>`}</li>`,
  )
  return html`<section class="chain"><h2>Files <span class="count">${files.length}</span></h2><ul>${items}</ul><p class="note">Files that were named with the decision, or edited between it and your next message.</p></section>`
}

const MAX_FIX_TITLE_LENGTH = 120

/** An error, the edits that fixed it, and the messages about it. The page's id is the ref of the failed run. */
export async function fixPage({ dex, params, to }: PageRequest): Promise<ViewPage> {
  const id = params.id ?? ""
  const ref = parseCompleteRef(id)
  if (!dex.hasHistory())
    throw new DexError("not_found", "No conversations have been read yet. Run `dex sync` in a terminal.")
  const { knowledge, notes, hidden } = await updatedKnowledge(dex)
  const fixes = ref?.number === undefined ? [] : knowledge.fixes.fixesOfRun({ ...ref, number: ref.number }, hidden)
  const [first] = fixes
  if (!first) throw new DexError("not_found", `No fix is known for ${id}. ${notes.join(" ")}`.trim())
  const fixItems = await Promise.all(fixes.map((fix) => fixHtml(dex, fix, to)))
  const error = first.lines[0] ?? first.command
  const title = error.length > MAX_FIX_TITLE_LENGTH ? `${error.slice(0, MAX_FIX_TITLE_LENGTH)}…` : error
  const body = html`<div class="fact-page"><header class="title"><p class="kind">${first.fixed_number === undefined ? "Not fixed" : "Fix"}</p><h1>${title}</h1>${factLine(dex, first)}</header>${fixItems}${notes.map((note) => html`<p class="note">${note}</p>`)}</div>`
  return { title, body }
}

function factLine(dex: Dex, { project, at, edits }: KnownFix): Html {
  return html`<p class="line">${project !== undefined && html`<span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span>`}${at !== undefined && html`<time datetime="${isoDate(at)}">${when(isoDate(at))}</time>`}<span>${many(edits, "edit")}</span></p>`
}

async function fixHtml(dex: Dex, fix: KnownFix, to: Addresses): Promise<Html> {
  const link = (number: number) => messageLink(dex, { ...refFrom(fix.source, fix.id), number }, to)
  const passedHtml =
    fix.fixed_number === undefined
      ? html`<p class="none">No run passed afterwards, as far as dex knows.</p>`
      : html`<p>${await link(fix.fixed_number)}</p>`
  const omitted = fix.edit_lines_left_out
  return html`<section class="step bad"><h2>What failed</h2><pre class="code">${highlightedHtml(fix.command, "bash")}</pre><pre class="output">${fix.lines.join("\n")}</pre><p>${await link(fix.failed_number)}</p></section>
<section class="step"><h2>What was changed</h2>${fixFilesHtml(fix, to)}${fix.edit === "" ? html`<p class="none">The agent does not record its changes line by line.</p>` : html`<pre class="code">${highlightedHtml(fix.edit, "diff")}</pre>`}${omitted > 0 && html`<p class="note">${many(omitted, "more line of the change is", "more lines of the change are")} in the conversation.</p>`}</section>
<section class="step good"><h2>What passed</h2>${passedHtml}</section>`
}

async function messageLink(dex: Dex, ref: Ref, to: Addresses): Promise<Html> {
  const name = formatRef(ref)
  const message = await findMessage(dex, name)
  if (!message) return html`${name}`
  return html`<a href="${addressOfRef(to, name)}">Message ${ref.number ?? ""} of “${conversationOf(message.row).title}”</a>`
}

function fixFilesHtml({ files, project }: KnownFix, to: Addresses): Html {
  const items = files.map(
    ({ path, added, removed }) =>
      html`<li class="row" tabindex="-1">${project === undefined ? html`<span class="title">${path}</span>` : html`<a class="title" href="${to.file(project, path)}">${path}</a>`} <span class="count"><span class="added">+${added}</span> <span class="removed">−${removed}</span></span></li>`,
  )
  return html`<ul class="chain">${items}</ul>`
}

/** A message to which the page of a decision or a fix refers. */
type NamedMessage = { row: ConversationRow; message: StoredMessage; agent: string }

const MAX_CHARS = 3_000

/** Undefined if the ref names no message that exists. */
async function findMessage(dex: Dex, ref: string): Promise<NamedMessage | undefined> {
  const parsed = parseCompleteRef(ref)
  if (parsed?.number === undefined) return undefined
  const store = await dex.store()
  const row = await store.conversation(conversationRefOf(parsed))
  const [message] = row ? await store.messages(row.ref, [parsed.number]) : []
  if (!row || !message) return undefined
  return { row, message, agent: (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source }
}

/** The message as the reading page shows it, below a link to its conversation. */
function namedMessageHtml(title: string, { row, message, agent }: NamedMessage, to: Addresses): Html {
  const { number, role, parts, at } = message
  const facts = at === undefined ? [] : [localMinute(at)]
  const ref = formatRef(row.ref)
  const messageMarkup = messageHtml(
    { number, role, parts, facts },
    {
      agent,
      root: row.project ?? "",
      outcomes: new Map(),
      maxChars: MAX_CHARS,
      rest: () => html`<a class="rest" href="${to.read(ref, number)}">Show all of it</a>`,
    },
  )
  return html`<section class="stands"><h2>${title}</h2><p><a href="${to.read(ref, number)}">Message ${number} of “${conversationOf(row).title}”</a></p>${messageMarkup}</section>`
}
