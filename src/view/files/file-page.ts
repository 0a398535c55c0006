import { DexError, isDexError } from "../../core/error.ts"
import type { OutputOf } from "../../core/tool.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many, projectName, shortPath } from "../../render/words.ts"
import { blame } from "../../tools/blame/blame.ts"
import type { Addresses } from "../address.ts"
import { shareBar } from "../charts/share-bar.ts"
import { askTool, type PageRequest, type ViewPage } from "../page.ts"
import { type FileAsked, fileAsked } from "./asked.ts"
import { type FileSides, fileSidesHtml, isAnythingKnown, sidesOf } from "./file-sides.ts"
import { ownedLinesHtml } from "./owned-lines.ts"

type Blamed = OutputOf<typeof blame>

/** How many lines are one part of the page. */
const LINES_AT_ONCE = 1_000

/** A file with who wrote each line, and beside it what else is known of it. */
export async function filePage(request: PageRequest): Promise<ViewPage> {
  const asked = await fileAsked(request)
  const { to, query } = request
  const { dex, path, project } = asked
  const [blamed, sides] = await Promise.all([blamedNow(asked), sidesOf(asked)])
  if ("why" in blamed && !isAnythingKnown(sides)) throw new DexError("not_found", blamed.why)
  const at = Number(query.get("at") ?? query.get("from") ?? 1)
  const lines =
    "why" in blamed
      ? html`<p class="notice-here">${blamed.why}</p>${earlier(asked, sides, to)}`
      : linesHtml(blamed, partAt(blamed, at), asked, to)
  const count = "why" in blamed ? undefined : many(blamed.total, "line")
  const head = "why" in blamed ? undefined : blamedHead(blamed)
  const body = html`<div class="filing"><header class="title"><h1>${breakable(path)}</h1><p class="line"><span title="${shortPath(project, dex.machine.home)}">${projectName(project)}</span>${count !== undefined && html`<span>${count}</span>`}<span>${revision(asked, to)}</span></p>${head}</header>
<aside class="facts" aria-label="About this file"><details open><summary>About this file</summary>${fileSidesHtml(sides, asked, to)}</details></aside>
<div class="${head ? "owned" : "unowned"}">${lines}</div></div>`
  return { title: path, body }
}

/** Some more lines of it, for a page that is open. */
export async function filePart(request: PageRequest): Promise<ViewPage> {
  const asked = await fileAsked(request)
  const blamed = await blamedBefore(asked)
  if ("why" in blamed) throw new DexError("not_found", blamed.why)
  const index = partAt(blamed, Number(request.query.get("from") ?? 1))
  return { title: "", isPart: true, body: linesHtml(blamed, index, asked, request.to) }
}

/** The answer that the last page was made of: its other parts come out of the same, so that their numbers fit. */
let last: { of: string; answer: Blamed } | undefined

function keyOf({ project, path, rev = "" }: FileAsked): string {
  return JSON.stringify([project, path, rev])
}

async function blamedBefore(asked: FileAsked): Promise<Blamed | { why: string }> {
  return last?.of === keyOf(asked) ? last.answer : blamedNow(asked)
}

async function blamedNow(asked: FileAsked): Promise<Blamed | { why: string }> {
  const { dex, place, path, rev } = asked
  try {
    const answer = await askTool(dex, blame, { target: place, ...(rev !== undefined && { rev }) })
    if (answer.kind === "folder")
      return { why: `${path} is a folder. dex blame ${path} tells who wrote how much of it.` }
    if (answer.kind === "commits") return { why: `There is no file ${path} any more.` }
    last = answer.total > LINES_AT_ONCE ? { of: keyOf(asked), answer } : undefined
    return answer
  } catch (error) {
    if (!isDexError(error)) throw error
    return { why: whyNoLines(path, error) }
  }
}

function whyNoLines(path: string, { code, message }: DexError): string {
  if (code === "no_repository") return `${path} is in no git repository here, so there is no history of its lines.`
  if (code === "not_found" && message.startsWith("No file")) return `There is no file ${path} any more.`
  return /no such path/.test(message) ? `${path} is not in git, so there is no history of its lines.` : message
}

/** What is gone is still in the commits that had it: the newest one that changed it, and the one before. */
function earlier({ project, path, rev }: FileAsked, { changes }: FileSides, to: Addresses): Html | undefined {
  const newest = changes?.[0]
  if (newest === undefined || rev !== undefined) return undefined
  return html`<p><a href="${to.file(project, path, { rev: `${newest.hash}~1` })}">Show it as it was before “${newest.subject}”</a></p>`
}

function revision({ project, path, rev }: FileAsked, to: Addresses): Html {
  if (rev === undefined) return html`as it is on the disk`
  const short = /^[0-9a-f]{40}/.test(rev) ? rev.slice(0, 8) + rev.slice(40) : rev
  return html`as it was at <code>${short}</code> (<a href="${to.file(project, path)}">now</a>)`
}

/** A path may break behind each folder. */
function breakable(path: string): Html {
  return html`${path.split("/").map((name, i) => (i === 0 ? html`${name}` : html`/<wbr>${name}`))}`
}

function blamedHead(blamed: Blamed): Html {
  const agents = blamed.agents
    .filter(({ agent }) => agent !== "")
    .map(({ agent, total, unknown }) => {
      const named = unknown === 0 ? "" : `${many(unknown, "line")} only by the word of its commits`
      const known = total === unknown ? "" : many(total - unknown, "line")
      return `${agent}: ${[known, named].filter((part) => part !== "").join(", ")}`
    })
  const said = [...(agents.length > 0 ? [`${agents.join(". ")}.`] : []), ...blamed.notes]
  return html`${shareBar(blamed)}${said.map((note) => html`<p class="note">${note}</p>`)}`
}

function partAt({ lines }: Blamed, line: number): number {
  const most = Math.max(0, Math.ceil(lines.length / LINES_AT_ONCE) - 1)
  return Number.isSafeInteger(line) ? Math.min(most, Math.max(0, Math.floor((line - 1) / LINES_AT_ONCE))) : 0
}

function linesHtml({ lines }: Blamed, index: number, asked: FileAsked, to: Addresses): Html {
  const { project, path, rev } = asked
  if (lines.length === 0) return html`<p class="none">The file is empty.</p>`
  const from = index * LINES_AT_ONCE
  const shown = lines.slice(from, from + LINES_AT_ONCE)
  const link = (at: number, rel: "prev" | "next", says: string) => {
    const end = Math.min(lines.length, at + LINES_AT_ONCE)
    if (at < 0 || at >= lines.length) return undefined
    const page = to.file(project, path, { rev, from: at + 1 })
    const part = to.to("file/part", { project, path, rev, from: at + 1 })
    return html`<a class="more" rel="${rel}" href="${page}" data-part="${part}">${says}: ${at + 1} to ${end}</a>`
  }
  return html`<section class="part" data-from="${from + 1}">${link(from - LINES_AT_ONCE, "prev", "Earlier lines")}${ownedLinesHtml(shown, { path, project, to, areNamed: true })}${link(from + LINES_AT_ONCE, "next", "Later lines")}</section>`
}
