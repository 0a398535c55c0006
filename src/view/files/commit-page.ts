import type { why } from "../../answers/why.ts"
import { sectionsOf, shareText } from "../../answers/why-page.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError, isDexError } from "../../core/error.ts"
import { messageText } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import type { CommitDiff, DiffFile } from "../../git/commit-diffs.ts"
import { resolveCommit } from "../../git/revisions.ts"
import type { LineOwner } from "../../learn/blame/owners.ts"
import { pathBelowAny, pathRootsOf } from "../../learn/paths.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectName, shortPath, when } from "../../render/words.ts"
import type { StoredMessage } from "../../store/history/store.ts"
import { countsOf, ownerFacts } from "../../tools/blame/owner-facts.ts"
import { type OwnersOfTarget, ownersOfTarget } from "../../tools/blame/owners-of-target.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationOf } from "../../tools/fields.ts"
import { shareBar } from "../charts.ts"
import type { PageRequest, ViewPage } from "../page.ts"
import { type Addresses, addressOfRef } from "../page.ts"
import { type OwnedLine, ownedLinesHtml } from "./owned-lines.ts"
import { requestedProject } from "./requested-file.ts"

type Why = OutputOf<typeof why>

/** The maximum number of lines of a commit that are shown. Further lines are only counted. */
const MAX_LINES = 1_500
const OPEN_FILES = 5

/** The page of a commit: why it was made, and who wrote its lines. */
export async function commitPage(request: PageRequest): Promise<ViewPage> {
  const { query, to } = request
  const dex = await requestedProject(request)
  const name = query.get("commit") ?? ""
  const hash = await requestedCommit(dex, name)
  if (hash === undefined) return lostCommitPage(dex, name, to)
  const owned = await ownersOfTarget(dex, { target: hash })
  const [commit] = owned.diffs
  if (!commit) throw new DexError("not_found", `${hash.slice(0, 10)} is too large to show.`)
  const explanation = dex.hasHistory() ? await whyOf(dex, hash, owned) : undefined
  const notes = [...new Set([...owned.notes, ...(explanation?.notes ?? [])])]
  const subject = commit.subject || hash.slice(0, 10)
  const body = html`<div class="commit-page"><header class="title"><h1>${subject}</h1>${factLine(dex, commit)}${commit.body !== "" && html`<pre class="plain">${commit.body}</pre>`}<div class="tools"><button type="button" data-copy="${hash}">Copy hash</button></div></header>
<section aria-label="Why"><h2>Why</h2>${whyHtml(explanation, owned, to)}</section>
<section aria-label="Lines"><h2>Who wrote its lines</h2>${shareBar(countsOf(owned.owners.map(({ level }) => level)))}${notes.map((note) => html`<p class="note">${note}</p>`)}${filesHtml(commit, owned.owners, dex.project, to)}</section></div>`
  return { title: subject, body }
}

/** Accepts only hashes, because any other name could mean a file, a range, or another commit tomorrow. */
async function requestedCommit(dex: Dex, name: string): Promise<string | undefined> {
  if (!HASH.test(name)) throw new DexError("not_found", `There is no commit ${name} in ${dex.place}.`)
  // A folder that is gone, or that is not a repository any more, has no commits either.
  return resolveCommit(dex.place, name, dex.signal).catch((error: unknown) => {
    if (!isDexError(error)) throw error
    return undefined
  })
}

const HASH = /^[0-9a-f]{4,64}$/i
/** The maximum number of commits of all conversations to look through. */
const MAX_KNOWN_COMMITS = 100_000
const MAX_PROMPTS = 8

/** A commit that the repository does not contain, because it was squashed or rebased: what its conversation knows of it. */
async function lostCommitPage(dex: Dex, name: string, to: Addresses): Promise<ViewPage> {
  const store = dex.hasHistory() ? await dex.store() : undefined
  const known = (await store?.commits({ limit: MAX_KNOWN_COMMITS, inside: dex.project })) ?? []
  const wanted = name.toLowerCase()
  for (const { ref, hash, subject, at } of known) {
    if (!hash.startsWith(wanted) && !wanted.startsWith(hash)) continue
    const row = await store!.conversation(ref)
    if (row?.project !== dex.project) continue
    const { prompts, files } = workBefore(await store!.messages(row.ref), ref.number)
    const id = formatRef(row.ref)
    const roots = pathRootsOf(row)
    const fileItems = [...files].map(([path, { added, removed }]) => {
      const below = pathBelowAny(roots, path)
      const counts = html`<span class="added">+${added}</span> <span class="removed">−${removed}</span>`
      return html`<li>${below === undefined ? path : html`<a href="${to.file(dex.project, below)}">${below}</a>`} ${counts}</li>`
    })
    const promptItems = prompts
      .slice(-MAX_PROMPTS)
      .map(({ number, text }) => html`<li><a href="${to.read(id, number)}">${text}</a></li>`)
    const list = (title: string, items: Html[]) => items.length > 0 && html`<dt>${title}</dt><dd><ul>${items}</ul></dd>`
    const body = html`<div class="commit-page"><header class="title"><h1>${subject || hash}</h1><p class="line"><span title="${shortPath(dex.project, dex.machine.home)}">${projectName(dex.project)}</span>${at !== undefined && html`<time datetime="${isoDate(at)}">${when(isoDate(at))}</time>`}<span><code>${hash}</code></span></p><p class="notice-here">The repository does not contain this commit any more, as after a squash or a rebase. This is what the conversation that made it knows.</p></header>
<section aria-label="Why"><h2>Why</h2><article class="because row proved" tabindex="-1"><h3><a class="title" href="${to.read(id, ref.number)}">${conversationOf(row).title}</a></h3><p class="line"><span class="how proved">it made the commit</span></p><dl>${list("Asked", promptItems)}${list("Edited since its commit before", fileItems)}</dl></article></section></div>`
    return { title: subject || hash, body }
  }
  throw new DexError("not_found", `There is no commit ${name} in ${dex.place}, and no conversation made it.`)
}

/** The prompts and the edited files of a conversation between its commit before and the one in this message. */
function workBefore(messages: readonly StoredMessage[], number: number) {
  const end = messages.findIndex((message) => message.number === number)
  const start = messages.findLastIndex(
    ({ effects }, i) => i < end && effects.some((effect) => effect.type === "commit"),
  )
  const files = new Map<string, { added: number; removed: number }>()
  const prompts: { number: number; text: string }[] = []
  for (const message of messages.slice(start + 1, end + 1)) {
    const text = message.role === "user" ? messageText(message, "user_only").trim() : ""
    if (text !== "") prompts.push({ number: message.number, text: text.slice(0, 160).replaceAll(/\s+/g, " ") })
    for (const effect of message.effects)
      if (effect.type === "file" && effect.action === "edited") {
        const { added, removed } = files.get(effect.path) ?? { added: 0, removed: 0 }
        files.set(effect.path, { added: added + (effect.added ?? 0), removed: removed + (effect.removed ?? 0) })
      }
  }
  return { prompts, files }
}

/** The output of the tool `why`, for lines whose owners are already known. */
async function whyOf(dex: Dex, hash: string, owned: OwnersOfTarget): Promise<Why> {
  const { explainOwners } = await import("../../answers/why.run.ts")
  return explainOwners(dex, { target: hash, pr: false, facts: true }, owned)
}

function factLine(dex: Dex, { hash, at, files }: CommitDiff): Html {
  const { project } = dex
  const sum = (count: (file: DiffFile) => number) => files.reduce((all, file) => all + count(file), 0)
  return html`<p class="line"><span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span><time datetime="${isoDate(at)}">${when(isoDate(at))}</time><span><code>${hash.slice(0, 10)}</code></span><span>${many(files.length, "file")}</span><span><span class="added">+${sum(({ added }) => added.length)}</span> <span class="removed">−${sum(({ removed }) => removed.length)}</span></span></p>`
}

function whyHtml(explanation: Why | undefined, { makers }: OwnersOfTarget, to: Addresses): Html {
  if (explanation === undefined)
    return html`<p class="none">No conversations have been read yet. <code>dex sync</code> reads them.</p>`
  const recordedMaker = makers.find((maker) => maker.recorded !== undefined)
  const recordedText = recordedMaker && ownerFacts(recordedMaker).recorded
  if (explanation.conversations.length === 0)
    return html`<p class="none">No conversation that dex has read is known to have written it.${recordedText !== undefined && ` The repository says: ${recordedText}.`}</p>`
  return html`${explanation.conversations.map((conversation) => explanationHtml(conversation, explanation.lines, to))}`
}

function explanationHtml(conversation: Why["conversations"][number], lineCount: number, to: Addresses): Html {
  const sections = sectionsOf(conversation).map(
    ({ title, rows }) =>
      html`<dt>${title}</dt><dd><ul>${rows.map(({ text, ref }) => html`<li><a href="${addressOfRef(to, ref)}">${text}</a></li>`)}</ul></dd>`,
  )
  return html`<article class="because row ${conversation.level}" tabindex="-1"><h3><a class="title" href="${to.read(conversation.ref)}">${conversation.title}</a></h3><p class="line"><span class="how ${conversation.level}">${shareText(conversation, lineCount)}</span><span>${when(conversation.date)}</span></p>${sections.length > 0 && html`<dl>${sections}</dl>`}</article>`
}

/** The lines that the commit added, file by file. `owners` are in the order of the lines. */
function filesHtml({ hash, files }: CommitDiff, owners: readonly LineOwner[], project: string, to: Addresses): Html {
  let position = 0
  let room = MAX_LINES
  const fileItems = files.map(({ path, from, added, removed }, i) => {
    const ownedLines: OwnedLine[] = added.map((line, n) => ({ ...line, ...ownerFacts(owners[position + n]!) }))
    position += added.length
    const visibleLines = ownedLines.slice(0, Math.max(0, room))
    room -= ownedLines.length
    const omitted = ownedLines.length - visibleLines.length
    const counts = html`<span class="outcome"><span class="added">+${added.length}</span> <span class="removed">−${removed.length}</span></span>`
    const renameNote = from !== undefined && from !== path && html`<p class="note">Renamed from ${from}.</p>`
    const fileLinks = html`<p class="note"><a href="${to.file(project, path, { rev: hash })}">The file as of this commit</a> · <a href="${to.file(project, path)}">now</a></p>`
    return html`<details class="fold changed"${i < OPEN_FILES && visibleLines.length > 0 && html` open`}><summary><span class="what">${path}</span>${counts}</summary><div class="body">${renameNote}${fileLinks}<div class="owned">${ownedLinesHtml(visibleLines, { path, project, to })}</div>${omitted > 0 && html`<p class="note">${many(omitted, "more line")} not shown.</p>`}${added.length === 0 && html`<p class="none">The commit added no lines to this file.</p>`}</div></details>`
  })
  return html`${fileItems}${files.length === 0 && html`<p class="none">The commit changed no lines of text.</p>`}`
}
