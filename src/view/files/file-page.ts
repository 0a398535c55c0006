import { localDay } from "../../core/dates.ts"
import { DexError, isDexError } from "../../core/error.ts"
import { formatRef, refFrom } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { type CommitOfFile, commitsChanging } from "../../git/revisions.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectName, shortPath } from "../../render/words.ts"
import type { FileVisit } from "../../store/knowledge/files.ts"
import type { KnownFix } from "../../store/knowledge/fixes.ts"
import { blame } from "../../tools/blame/blame.ts"
import type { Dex } from "../../tools/context.ts"
import { decisions } from "../../tools/decisions/decisions.ts"
import { conversationOf } from "../../tools/fields.ts"
import { updatedKnowledge } from "../../tools/learned.ts"
import { shareBar } from "../charts.ts"
import type { Addresses } from "../page.ts"
import { type PageRequest, runToolForPage, type ViewPage } from "../page.ts"
import { ownedLinesHtml } from "./owned-lines.ts"
import { type RequestedFile, requestedFile } from "./requested-file.ts"

type BlamedOutput = OutputOf<typeof blame>

/** How many lines one part of the page contains. */
const LINES_AT_ONCE = 1_000

/** The page of a file: the owner of each line and, at the side, other known facts. */
export async function filePage(request: PageRequest): Promise<ViewPage> {
  const file = await requestedFile(request)
  const { to, query } = request
  const { dex, path, project } = file
  const [blamed, facts] = await Promise.all([blameNow(file), factsAbout(file)])
  if ("why" in blamed && !isAnythingKnown(facts)) throw new DexError("not_found", blamed.why)
  const requestedLine = Number(query.get("at") ?? query.get("from") ?? 1)
  const lines =
    "why" in blamed
      ? html`<p class="notice-here">${blamed.why}</p>${earlierLink(file, facts, to)}`
      : linesHtml(blamed, partAt(blamed, requestedLine), file, to)
  const count = "why" in blamed ? undefined : many(blamed.total, "line")
  const head = "why" in blamed ? undefined : blamedHead(blamed)
  const body = html`<div class="filing"><header class="title"><h1>${breakablePath(path)}</h1><p class="line"><span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span>${count !== undefined && html`<span>${count}</span>`}<span>${revisionHtml(file, to)}</span></p>${head}</header>
<aside class="facts" aria-label="About this file"><details open><summary>About this file</summary>${fileFactsHtml(facts, file, to)}</details></aside>
<div class="${head ? "owned" : "unowned"}">${lines}</div></div>`
  return { title: path, body }
}

/** More lines of the file, for a page that is already open. */
export async function filePart(request: PageRequest): Promise<ViewPage> {
  const file = await requestedFile(request)
  const blamed = await lastAnswerFor(file)
  if ("why" in blamed) throw new DexError("not_found", blamed.why)
  const index = partAt(blamed, Number(request.query.get("from") ?? 1))
  return { title: "", isPart: true, body: linesHtml(blamed, index, file, request.to) }
}

/** The last page's answer. Other parts of that page reuse it, so that their line numbers match. */
let lastAnswer: { key: string; answer: BlamedOutput } | undefined

function keyOf({ project, path, rev = "" }: RequestedFile): string {
  return JSON.stringify([project, path, rev])
}

async function lastAnswerFor(file: RequestedFile): Promise<BlamedOutput | { why: string }> {
  return lastAnswer?.key === keyOf(file) ? lastAnswer.answer : blameNow(file)
}

async function blameNow(file: RequestedFile): Promise<BlamedOutput | { why: string }> {
  const { dex, diskPath, path, rev } = file
  try {
    const answer = await runToolForPage(dex, blame, { target: diskPath, rev })
    if (answer.kind === "folder")
      return { why: `${path} is a folder. dex blame ${path} shows who wrote how much of it.` }
    if (answer.kind === "commits") return { why: `There is no file ${path} any more.` }
    lastAnswer = answer.total > LINES_AT_ONCE ? { key: keyOf(file), answer } : undefined
    return answer
  } catch (error) {
    if (!isDexError(error)) throw error
    return { why: whyNoLines(file, error) }
  }
}

function whyNoLines({ path, rev }: RequestedFile, { code, message }: DexError): string {
  if (code === "no_repository") return `${path} is not in a git repository, so its lines have no history.`
  if (code === "not_found" && rev === undefined) return `There is no file ${path} any more.`
  return /no such path/.test(message) ? `${path} is not tracked by git, so its lines have no history.` : message
}

/** A link to a deleted file as it was before the newest commit that changed it. */
function earlierLink({ project, path, rev }: RequestedFile, { changes }: FileFacts, to: Addresses): Html | undefined {
  const newest = changes?.[0]
  if (newest === undefined || rev !== undefined) return undefined
  return html`<p><a href="${to.file(project, path, { rev: `${newest.hash}~1` })}">Show it as it was before “${newest.subject}”</a></p>`
}

function revisionHtml({ project, path, rev }: RequestedFile, to: Addresses): Html {
  if (rev === undefined) return html`as it is on the disk`
  const short = /^[0-9a-f]{40}/.test(rev) ? rev.slice(0, 8) + rev.slice(40) : rev
  return html`as it was at <code>${short}</code> (<a href="${to.file(project, path)}">now</a>)`
}

/** Allows a line break before each name in the path. */
function breakablePath(path: string): Html {
  return html`${path.split("/").map((name, i) => (i === 0 ? html`${name}` : html`/<wbr>${name}`))}`
}

function blamedHead(blamed: BlamedOutput): Html {
  const agents = blamed.agents
    .filter(({ agent }) => agent !== "")
    .map(({ agent, total, unknown }) => {
      const unattributed = unknown === 0 ? "" : `${many(unknown, "line")} only according to its commits`
      const attributed = total === unknown ? "" : many(total - unknown, "line")
      return `${agent}: ${[attributed, unattributed].filter((part) => part !== "").join(", ")}`
    })
  const texts = [...(agents.length > 0 ? [`${agents.join(". ")}.`] : []), ...blamed.notes]
  return html`${shareBar(blamed)}${texts.map((note) => html`<p class="note">${note}</p>`)}`
}

function partAt({ lines }: BlamedOutput, line: number): number {
  const lastPart = Math.max(0, Math.ceil(lines.length / LINES_AT_ONCE) - 1)
  return Number.isSafeInteger(line) ? Math.min(lastPart, Math.max(0, Math.floor((line - 1) / LINES_AT_ONCE))) : 0
}

function linesHtml({ lines }: BlamedOutput, index: number, file: RequestedFile, to: Addresses): Html {
  const { project, path, rev } = file
  if (lines.length === 0) return html`<p class="none">The file is empty.</p>`
  const from = index * LINES_AT_ONCE
  const visibleLines = lines.slice(from, from + LINES_AT_ONCE)
  const link = (start: number, rel: "prev" | "next", label: string) => {
    const end = Math.min(lines.length, start + LINES_AT_ONCE)
    if (start < 0 || start >= lines.length) return undefined
    const page = to.file(project, path, { rev, from: start + 1 })
    const part = to.path("file/part", { project, path, rev, from: start + 1 })
    return html`<a class="more" rel="${rel}" href="${page}" data-part="${part}">${label}: ${start + 1} to ${end}</a>`
  }
  return html`<section class="part" data-from="${from + 1}">${link(from - LINES_AT_ONCE, "prev", "Earlier lines")}${ownedLinesHtml(visibleLines, { path, project, to, hasAnchors: true })}${link(from + LINES_AT_ONCE, "next", "Later lines")}</section>`
}

const MAX_VISITS = 12
const MAX_DECISIONS = 8
const MAX_FIXES = 6
const MAX_CHANGES = 12
const MAX_QUOTE_LENGTH = 180

type WorkedConversation = Pick<FileVisit, "edits" | "reads" | "added" | "removed" | "last_number" | "at"> & {
  ref: string
  title: string
}
type Decision = Awaited<ReturnType<typeof decisionsAbout>>["decisions"][number]

/** The known facts about a file, except its lines. */
type FileFacts = {
  conversations: WorkedConversation[]
  /** True if there are more conversations than these. */
  hasMoreConversations: boolean
  decisions: Decision[]
  decisionCount: number
  fixes: KnownFix[]
  fixCount: number
  /** Undefined if git did not answer in time, or there is no repository. */
  changes: CommitOfFile[] | undefined
  notes: string[]
}

async function factsAbout(file: RequestedFile): Promise<FileFacts> {
  const { dex, project, path, rev } = file
  const changesPromise = commitsChanging(project, path, { maxCommits: MAX_CHANGES, rev, signal: dex.signal })
  changesPromise.catch(() => {}) // an error is thrown where the result is awaited
  if (!dex.hasHistory())
    return {
      ...NO_FACTS,
      changes: await changesPromise,
      notes: ["No conversations have been read yet. Run `dex sync` in a terminal."],
    }
  const [facts, decisionOutput] = await Promise.all([knownFacts(file), decisionsAbout(file)])
  return {
    ...facts,
    decisions: decisionOutput.decisions,
    decisionCount: decisionOutput.total,
    changes: await changesPromise,
    notes: [...new Set([...facts.notes, ...decisionOutput.notes.filter((note) => !/^\d/.test(note))])],
  }
}

const NO_FACTS = {
  conversations: [],
  hasMoreConversations: false,
  decisions: [],
  decisionCount: 0,
  fixes: [],
  fixCount: 0,
}

function decisionsAbout({ dex, diskPath }: RequestedFile) {
  return runToolForPage(dex, decisions, { file: diskPath, limit: MAX_DECISIONS })
}

async function knownFacts({ dex, project, path }: RequestedFile) {
  const { knowledge, notes } = await updatedKnowledge(dex)
  const name = knowledge.files.knownSpelling(project, path)
  const visits = knowledge.files.visitsTo(project, name, MAX_VISITS + 1)
  const { fixes, total } = knowledge.fixes.fixesEditing(project, name, MAX_FIXES)
  const conversations = await Promise.all(visits.slice(0, MAX_VISITS).map((visit) => withTitle(dex, visit)))
  return { conversations, hasMoreConversations: visits.length > MAX_VISITS, fixes, fixCount: total, notes }
}

async function withTitle(dex: Dex, visit: FileVisit): Promise<WorkedConversation> {
  const ref = refFrom(visit.source, visit.id)
  const row = await (await dex.store()).conversation(ref)
  return { ...visit, ref: formatRef(ref), title: row ? conversationOf(row).title : "(forgotten)" }
}

function isAnythingKnown({ conversations, decisions, fixes, changes }: FileFacts): boolean {
  return conversations.length + decisions.length + fixes.length + (changes?.length ?? 0) > 0
}

function fileFactsHtml(facts: FileFacts, { project }: RequestedFile, to: Addresses): Html {
  const changes = facts.changes ?? []
  return html`${listHtml(
    "Conversations",
    facts.hasMoreConversations ? `${MAX_VISITS}+` : facts.conversations.length,
    facts.conversations.map((conversation) => conversationHtml(conversation, to)),
    facts.hasMoreConversations ? `The newest ${MAX_VISITS}.` : undefined,
  )}${listHtml(
    "Decisions",
    facts.decisionCount,
    facts.decisions.map((decision) => decisionItem(decision, to)),
    facts.decisionCount > facts.decisions.length ? `The newest ${facts.decisions.length}.` : undefined,
  )}${listHtml(
    "Fixes",
    facts.fixCount,
    facts.fixes.map((fix) => fixItem(fix, to)),
    facts.fixCount > facts.fixes.length ? `The newest ${facts.fixes.length}.` : undefined,
  )}${listHtml(
    "Changes",
    changes.length > MAX_CHANGES ? `${MAX_CHANGES}+` : changes.length,
    changes
      .slice(0, MAX_CHANGES)
      .map(
        ({ hash, at, subject }) =>
          html`<li><a href="${to.commit(project, hash)}">${subject || hash.slice(0, 8)}</a><span class="under">${localDay(at)} <code>${hash.slice(0, 8)}</code></span></li>`,
      ),
    changes.length > MAX_CHANGES ? `The newest ${MAX_CHANGES}.` : undefined,
  )}${facts.notes.map((note) => html`<p class="note">${note}</p>`)}`
}

function listHtml(title: string, count: number | string, items: Html[], note?: string): Html | undefined {
  if (items.length === 0) return undefined
  return html`<section><h2>${title} <span class="count">${count}</span></h2><ul>${items}</ul>${note !== undefined && html`<p class="note">${note}</p>`}</section>`
}

function conversationHtml(
  { ref, title, edits, reads, added, removed, last_number, at }: WorkedConversation,
  to: Addresses,
): Html {
  const work =
    edits === 0
      ? html`read ${many(reads, "time")}`
      : html`<span class="added">+${added}</span> <span class="removed">−${removed}</span>`
  return html`<li><a href="${to.read(ref, last_number)}">${title.slice(0, MAX_QUOTE_LENGTH)}</a><span class="under">${at > 0 && localDay(at)} ${work}</span></li>`
}

function decisionItem({ quote, ref, by, date, superseded_by }: Decision, to: Addresses): Html {
  const facts = [date === "" ? "" : localDay(Date.parse(date)), `by ${by}`, superseded_by ? "reversed" : ""]
  return html`<li${superseded_by && html` class="gone"`}><a href="${to.decision(ref)}">${shortenQuote(quote)}</a><span class="under">${facts.filter((fact) => fact !== "").join(" · ")}</span></li>`
}

function fixItem({ source, id, failed_number, lines, command, at }: KnownFix, to: Addresses): Html {
  const ref = formatRef({ ...refFrom(source, id), number: failed_number })
  return html`<li><a href="${to.fix(ref)}"><code>${shortenQuote(lines[0] ?? command)}</code></a><span class="under">${at !== undefined && localDay(at)}</span></li>`
}

function shortenQuote(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim()
  return line.length > MAX_QUOTE_LENGTH ? `${line.slice(0, MAX_QUOTE_LENGTH)}…` : line
}
