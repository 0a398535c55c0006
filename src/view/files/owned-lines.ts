import { localDay } from "../../core/dates.ts"
import { highlightLines, languageOfFile } from "../../render/html/code-html.ts"
import { type Html, html } from "../../render/html/html.ts"
import type { OwnerFacts } from "../../tools/blame/blame.ts"
import { type Addresses, addressOfRef } from "../page.ts"

/** A line with its owner, if known. */
export type OwnedLine = OwnerFacts & {
  line: number
  text: string
  /** The commit that added the line; empty if it is not committed yet, undefined on that commit's own page. */
  commit?: string
  subject?: string
  date?: string
}

export type OwnedLinesOptions = {
  path: string
  project: string
  to: Addresses
  /** True if lines have anchors. They have none if several files are on one page. */
  hasAnchors?: boolean
}

const LEVEL_ORDER = ["proved", "likely", "unknown"] as const
const MAX_LINE_LENGTH = 2_000
const REASONS: Record<string, string> = {
  wrote_line: "it wrote these lines",
  wrote_near: "it wrote very similar lines there",
  ran_commit: "it made the commit",
  files_and_time: "it changed these files shortly before",
  recorded: "the repository says so",
}

/** Lines with their owners at the side. Consecutive lines of one owner form a group. */
export function ownedLinesHtml(lines: readonly OwnedLine[], options: OwnedLinesOptions): Html {
  const highlighted = highlightLines(
    lines.map(({ text }) => text.slice(0, MAX_LINE_LENGTH)),
    languageOfFile(options.path),
  )
  const groups: Html[] = []
  for (let start = 0, end = 1; start < lines.length; start = end++) {
    while (end < lines.length && isSameOwner(lines[end - 1]!, lines[end]!)) end++
    const code = lines.slice(start, end).map(({ line, text, level }, i) => {
      const omitted = text.length - MAX_LINE_LENGTH
      const lineNumber = options.hasAnchors
        ? html`<a class="at" id="L${line}" href="#L${line}" tabindex="-1">${line}</a>`
        : html`<span class="at">${line}</span>`
      return html`<div class="ln ${level}">${lineNumber}<code>${highlighted[start + i]}${omitted > 0 && html`<i> … ${omitted} more characters</i>`}</code></div>`
    })
    groups.push(groupHtml(lines.slice(start, end), code, options))
  }
  return html`${groups}`
}

function isSameOwner(a: OwnedLine, b: OwnedLine): boolean {
  return (
    a.line + 1 === b.line && a.conversation === b.conversation && a.recorded === b.recorded && a.commit === b.commit
  )
}

function groupHtml(lines: readonly OwnedLine[], code: Html[], { project, to }: OwnedLinesOptions): Html {
  const [first, last] = [lines[0]!, lines.at(-1)!]
  const { commit, agent, recorded, date = "" } = first
  const facts = [
    html`<span class="how ${strongestLevel(lines)}">${levelsIn(lines)}</span>`,
    agent !== undefined && html`<span>${agent}</span>`,
    recorded !== undefined && html`<span>${recorded}</span>`,
    date !== "" && html`<span>${localDay(Date.parse(date))}</span>`,
  ]
  const commitLink =
    commit !== undefined &&
    commit !== "" &&
    html`<a class="came" href="${to.commit(project, commit)}" title="${first.subject ?? ""}">${commit.slice(0, 8)}</a>`
  const label = first === last ? `Line ${first.line}` : `Lines ${first.line} to ${last.line}`
  const aloneClass = lines.length === 1 && " alone"
  return html`<div class="row group${aloneClass}" tabindex="-1" role="group" aria-label="${label}"><div class="who"><p class="first">${ownerTitle(first, to)}${commitLink}</p><p class="line" title="${reasonsIn(lines)}">${facts}</p></div><div class="lns">${code}</div></div>`
}

function strongestLevel(lines: readonly OwnedLine[]): string {
  return LEVEL_ORDER.find((level) => lines.some((line) => line.level === level))!
}

/** `proved`, or `12 proved, 3 likely` if there are several levels. */
function levelsIn(lines: readonly OwnedLine[]): string {
  const counts = LEVEL_ORDER.map((level) => [lines.filter((line) => line.level === level).length, level] as const)
  const presentLevels = counts.filter(([count]) => count > 0)
  return presentLevels.map(([count, level]) => (presentLevels.length === 1 ? level : `${count} ${level}`)).join(", ")
}

function reasonsIn(lines: readonly OwnedLine[]): string {
  const reasons = new Set(lines.flatMap(({ level, reason }) => (reason ? [`${level}: ${REASONS[reason]}`] : [])))
  return [...reasons].join("; ")
}

/** A link to the message that wrote the lines, or the commit's subject if no owner is known. */
function ownerTitle({ ref, title, commit, subject }: OwnedLine, to: Addresses): Html {
  if (ref !== undefined)
    return html`<a class="title" href="${addressOfRef(to, ref)}" title="${title ?? ""}">${title ?? "(no title)"}</a>`
  if (commit === "") return html`<span class="title none">Not committed yet</span>`
  if (commit === undefined) return html`<span class="title none">Owner unknown</span>`
  return html`<span class="title none" title="${subject ?? ""}">${subject || "(no subject)"}</span>`
}
