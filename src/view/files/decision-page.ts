import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { type Html, html } from "../../render/html/html.ts"
import { markdownHtml } from "../../render/html/markdown-html.ts"
import { projectName, shortPath, when } from "../../render/words.ts"
import type { DecisionKind, KnownDecision } from "../../store/knowledge/decisions.ts"
import { learnedOf } from "../../tools/learned.ts"
import type { Addresses } from "../address.ts"
import type { PageRequest, ViewPage } from "../page.ts"
import { messageNamed, namedMessageHtml } from "./named-message.ts"

const MOST_HERE = 20
const LONGEST_TITLE = 140

const KINDS: Record<DecisionKind, string> = {
  said: "said in the conversation",
  answer: "chosen when the agent asked",
  plan: "an approved plan",
  adr: "a record in a document",
  breaking: "a commit that breaks something",
  revert: "a commit that takes another one back",
  note: "a note that was kept",
}
const WORDS: Record<KnownDecision["origin"], string> = {
  person: "in your words",
  agent: "in the agent's words",
  document: "in a document's words",
  commit: "in a commit's words",
}

/** What a message or a commit decided, what it took back, and what took it back. */
export async function decisionPage({ dex, params, to }: PageRequest): Promise<ViewPage> {
  const ref = params.id ?? ""
  if (!dex.hasHistory())
    throw new DexError("not_found", "Nothing was read yet, so no decision is known. Run `dex sync` in a terminal.")
  const { knowledge, notes, hidden } = await learnedOf(dex)
  const ask = { except: hidden, with_commits: true, limit: MOST_HERE }
  const { decisions, total } = knowledge.decisions.knownDecisions({ ...ask, stated_in: ref })
  const [first] = decisions
  if (!first) throw new DexError("not_found", `No decision is known that ${ref} states. ${notes.join(" ")}`.trim())
  const earlier = knowledge.decisions.knownDecisions({ ...ask, taken_back_by: decisions.map(({ key }) => key) })
  const message = await messageNamed(dex, ref)
  const title = titleOf(first.quote)
  const { project, at } = first
  const body = html`<div class="fact-page"><header class="title"><p class="kind">${decisions.every((one) => one.reversed_by) ? "Decision, taken back" : "Decision"}</p><h1>${title}</h1><p class="line">${project !== undefined && html`<span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span>`}${at !== undefined && html`<time datetime="${isoDate(at)}">${when(isoDate(at))}</time>`}<span>${KINDS[first.kind]}</span><span>${WORDS[first.origin]}</span></p></header>${decisions.map((one) => quoteHtml(one, title, to))}${more(total - decisions.length, "in the same place")}${chain("It took back", earlier.decisions, to)}${more(earlier.total - earlier.decisions.length, "that it took back")}${message ? namedMessageHtml("Where it stands", message, to) : commitHtml(first, to)}${filesHtml(first, to)}${notes.map((note) => html`<p class="note">${note}</p>`)}</div>`
  return { title, body }
}

function titleOf(quote: string): string {
  const [line = ""] = quote.trim().split("\n", 1)
  return line.length > LONGEST_TITLE ? `${line.slice(0, LONGEST_TITLE)}…` : line
}

/** The words, where the title is not all of them, and what took them back. */
function quoteHtml({ quote, reversed_by: later }: KnownDecision, title: string, to: Addresses): Html {
  const words = quote.trim() !== title && html`<blockquote class="said">${markdownHtml(quote)}</blockquote>`
  return html`${words && html`<section class="quote">${words}</section>`}${later && chain("Taken back by", [later], to)}`
}

function more(count: number, where: string): Html | undefined {
  return count > 0 ? html`<p class="note">${count} more ${where}.</p>` : undefined
}

type Quoted = Pick<KnownDecision, "ref" | "quote" | "at">

function chain(title: string, decisions: readonly Quoted[], to: Addresses): Html | undefined {
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
  return html`<section><h2>Where it stands</h2><p><a href="${to.commit(project, hash)}">Commit ${hash.slice(0, 8)}</a></p></section>`
}

function filesHtml({ files, project }: KnownDecision, to: Addresses): Html | undefined {
  if (files.length === 0) return undefined
  const items = files.map(
    (path) =>
      html`<li class="row" tabindex="-1">${project === undefined ? html`<span class="title">${path}</span>` : html`<a class="title" href="${to.file(project, path)}">${path}</a>`}</li>`,
  )
  return html`<section class="chain"><h2>Files <span class="count">${files.length}</span></h2><ul>${items}</ul><p class="note">Named with it, or edited after it and before you spoke again.</p></section>`
}
