import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { formatRef, parseWholeRef, type Ref, refFrom } from "../../core/ref.ts"
import { highlightedHtml } from "../../render/html/code-html.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectName, shortPath, when } from "../../render/words.ts"
import type { KnownFix } from "../../store/knowledge/fixes.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import { learnedOf } from "../../tools/learned.ts"
import { type Addresses, addressOfRef } from "../address.ts"
import type { PageRequest, ViewPage } from "../page.ts"
import { messageNamed } from "./named-message.ts"

const LONGEST_TITLE = 120

/** An error, the edits that made it go away, and where that was. Its address is that of the run that failed. */
export async function fixPage({ dex, params, to }: PageRequest): Promise<ViewPage> {
  const given = params.id ?? ""
  const ref = parseWholeRef(given)
  if (!dex.hasHistory())
    throw new DexError("not_found", "Nothing was read yet, so no fix is known. Run `dex sync` in a terminal.")
  const { knowledge, notes, hidden } = await learnedOf(dex)
  const fixes = ref?.number === undefined ? [] : knowledge.fixes.fixesOfRun({ ...ref, number: ref.number }, hidden)
  const [first] = fixes
  if (!first) throw new DexError("not_found", `No fix is known of ${given}. ${notes.join(" ")}`.trim())
  const shown = await Promise.all(fixes.map((fix) => fixHtml(dex, fix, to)))
  const error = first.lines[0] ?? first.command
  const title = error.length > LONGEST_TITLE ? `${error.slice(0, LONGEST_TITLE)}…` : error
  const body = html`<div class="fact-page"><header class="title"><p class="kind">${first.fixed_number === undefined ? "Not fixed" : "Fix"}</p><h1>${title}</h1>${factLine(dex, first)}</header>${shown}${notes.map((note) => html`<p class="note">${note}</p>`)}</div>`
  return { title, body }
}

function factLine(dex: Dex, { project, at, edits }: KnownFix): Html {
  return html`<p class="line">${project !== undefined && html`<span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span>`}${at !== undefined && html`<time datetime="${isoDate(at)}">${when(isoDate(at))}</time>`}<span>${many(edits, "edit")}</span></p>`
}

async function fixHtml(dex: Dex, fix: KnownFix, to: Addresses): Promise<Html> {
  const link = (number: number) => messageLink(dex, { ...refFrom(fix.source, fix.id), number }, to)
  const passed =
    fix.fixed_number === undefined
      ? html`<p class="none">No run was seen to pass afterwards.</p>`
      : html`<p>${await link(fix.fixed_number)}</p>`
  const left = fix.edit_lines_left_out
  return html`<section class="step bad"><h2>What failed</h2><pre class="code">${highlightedHtml(fix.command, "bash")}</pre><pre class="output">${fix.lines.join("\n")}</pre><p>${await link(fix.failed_number)}</p></section>
<section class="step"><h2>What was changed</h2>${filesHtml(fix, to)}${fix.edit === "" ? html`<p class="none">The agent does not record its changes line by line.</p>` : html`<pre class="code">${highlightedHtml(fix.edit, "diff")}</pre>`}${left > 0 && html`<p class="note">${many(left, "more line")} of the change: in the conversation.</p>`}</section>
<section class="step good"><h2>What passed</h2>${passed}</section>`
}

async function messageLink(dex: Dex, ref: Ref, to: Addresses): Promise<Html> {
  const name = formatRef(ref)
  const named = await messageNamed(dex, name)
  if (!named) return html`${name}`
  return html`<a href="${addressOfRef(to, name)}">Message ${ref.number ?? ""} of “${conversationOf(named.row).title}”</a>`
}

function filesHtml({ files, project }: KnownFix, to: Addresses): Html {
  const items = files.map(
    ({ path, added, removed }) =>
      html`<li class="row" tabindex="-1">${project === undefined ? html`<span class="title">${path}</span>` : html`<a class="title" href="${to.file(project, path)}">${path}</a>`} <span class="count"><span class="added">+${added}</span> <span class="removed">−${removed}</span></span></li>`,
  )
  return html`<ul class="chain">${items}</ul>`
}
