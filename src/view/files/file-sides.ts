import { localDay } from "../../core/dates.ts"
import { formatRef, refFrom } from "../../core/ref.ts"
import { type CommitOfFile, changesTo } from "../../git/revisions.ts"
import { type Html, html } from "../../render/html/html.ts"
import { many } from "../../render/words.ts"
import type { Visit } from "../../store/knowledge/files.ts"
import type { KnownFix } from "../../store/knowledge/fixes.ts"
import type { Dex } from "../../tools/context.ts"
import { decisions } from "../../tools/decisions/decisions.ts"
import { conversationOf } from "../../tools/fields.ts"
import { learnedOf } from "../../tools/learned.ts"
import type { Addresses } from "../address.ts"
import { askTool } from "../page.ts"
import type { FileAsked } from "./asked.ts"

const MOST_VISITS = 12
const MOST_DECISIONS = 8
const MOST_FIXES = 6
const MOST_CHANGES = 12
const LONGEST_QUOTE = 180

type Worked = Pick<Visit, "edits" | "reads" | "added" | "removed" | "last_number" | "at"> & {
  ref: string
  title: string
}
type Decision = Awaited<ReturnType<typeof decided>>["decisions"][number]

/** What is known of a file beside its lines. */
export type FileSides = {
  worked: Worked[]
  /** There are more than these. */
  hasMoreWorked: boolean
  decisions: Decision[]
  decisionCount: number
  fixes: KnownFix[]
  fixCount: number
  /** Undefined: git did not tell in time, or there is no repository. */
  changes: CommitOfFile[] | undefined
  notes: string[]
}

export async function sidesOf(asked: FileAsked): Promise<FileSides> {
  const { dex, project, path, rev } = asked
  const changing = changesTo(project, path, { most: MOST_CHANGES, rev, signal: dex.signal })
  changing.catch(() => {}) // told below
  if (!dex.hasHistory())
    return { ...NOTHING, changes: await changing, notes: ["No conversation was read yet: `dex sync` reads them."] }
  const [known, made] = await Promise.all([knownOf(asked), decided(asked)])
  return {
    ...known,
    decisions: made.decisions,
    decisionCount: made.total,
    changes: await changing,
    notes: [...new Set([...known.notes, ...made.notes.filter((note) => !/^\d/.test(note))])],
  }
}

const NOTHING = { worked: [], hasMoreWorked: false, decisions: [], decisionCount: 0, fixes: [], fixCount: 0 }

function decided({ dex, place }: FileAsked) {
  return askTool(dex, decisions, { file: place, limit: MOST_DECISIONS })
}

async function knownOf({ dex, project, path }: FileAsked) {
  const { knowledge, notes } = await learnedOf(dex)
  const name = knowledge.files.fileAsKnown(project, path)
  const visits = knowledge.files.visitsTo(project, name, MOST_VISITS + 1)
  const { fixes, total } = knowledge.fixes.fixesEditing(project, name, MOST_FIXES)
  const worked = await Promise.all(visits.slice(0, MOST_VISITS).map((visit) => titled(dex, visit)))
  return { worked, hasMoreWorked: visits.length > MOST_VISITS, fixes, fixCount: total, notes }
}

async function titled(dex: Dex, visit: Visit): Promise<Worked> {
  const ref = refFrom(visit.source, visit.id)
  const row = await (await dex.store()).conversation(ref)
  return { ...visit, ref: formatRef(ref), title: row ? conversationOf(row).title : "(forgotten)" }
}

export function isAnythingKnown({ worked, decisions, fixes, changes }: FileSides): boolean {
  return worked.length + decisions.length + fixes.length + (changes?.length ?? 0) > 0
}

export function fileSidesHtml(sides: FileSides, { project }: FileAsked, to: Addresses): Html {
  const changes = sides.changes ?? []
  return html`${list(
    "Conversations",
    sides.hasMoreWorked ? `${MOST_VISITS}+` : sides.worked.length,
    sides.worked.map((one) => workedHtml(one, to)),
    sides.hasMoreWorked ? `The newest ${MOST_VISITS}.` : undefined,
  )}${list(
    "Decisions",
    sides.decisionCount,
    sides.decisions.map((one) => decisionItem(one, to)),
    sides.decisionCount > sides.decisions.length ? `The newest ${sides.decisions.length}.` : undefined,
  )}${list(
    "Fixes",
    sides.fixCount,
    sides.fixes.map((fix) => fixItem(fix, to)),
    sides.fixCount > sides.fixes.length ? `The newest ${sides.fixes.length}.` : undefined,
  )}${list(
    "Changes",
    changes.length > MOST_CHANGES ? `${MOST_CHANGES}+` : changes.length,
    changes
      .slice(0, MOST_CHANGES)
      .map(
        ({ hash, at, subject }) =>
          html`<li><a href="${to.commit(project, hash)}">${subject || hash.slice(0, 8)}</a><span class="under">${localDay(at)} <code>${hash.slice(0, 8)}</code></span></li>`,
      ),
    changes.length > MOST_CHANGES ? `The newest ${MOST_CHANGES}.` : undefined,
  )}${sides.notes.map((note) => html`<p class="note">${note}</p>`)}`
}

function list(title: string, count: number | string, items: Html[], note?: string): Html | undefined {
  if (items.length === 0) return undefined
  return html`<section><h2>${title} <span class="count">${count}</span></h2><ul>${items}</ul>${note !== undefined && html`<p class="note">${note}</p>`}</section>`
}

function workedHtml({ ref, title, edits, reads, added, removed, last_number, at }: Worked, to: Addresses): Html {
  const what =
    edits === 0
      ? html`read ${many(reads, "time")}`
      : html`<span class="added">+${added}</span> <span class="removed">−${removed}</span>`
  return html`<li><a href="${to.read(ref, last_number)}">${title.slice(0, LONGEST_QUOTE)}</a><span class="under">${at > 0 && localDay(at)} ${what}</span></li>`
}

function decisionItem({ quote, ref, by, date, superseded_by }: Decision, to: Addresses): Html {
  const facts = [date === "" ? "" : localDay(Date.parse(date)), `by ${by}`, superseded_by ? "taken back" : ""]
  return html`<li${superseded_by && html` class="gone"`}><a href="${to.decision(ref)}">${clipped(quote)}</a><span class="under">${facts.filter((fact) => fact !== "").join(" · ")}</span></li>`
}

function fixItem({ source, id, failed_number, lines, command, at }: KnownFix, to: Addresses): Html {
  const ref = formatRef({ ...refFrom(source, id), number: failed_number })
  return html`<li><a href="${to.fix(ref)}"><code>${clipped(lines[0] ?? command)}</code></a><span class="under">${at !== undefined && localDay(at)}</span></li>`
}

function clipped(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim()
  return line.length > LONGEST_QUOTE ? `${line.slice(0, LONGEST_QUOTE)}…` : line
}
