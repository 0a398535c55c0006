import { DAY_MS, localDay } from "../../core/dates.ts"
import type { Moment } from "../../core/suggestion.ts"
import { fileNameOf } from "../../learn/paths.ts"
import type { KnownDecision } from "../../store/knowledge/decisions.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { namesOf } from "./code.ts"
import { beginningOf, type Candidate, type Finder, speakerName } from "./finder.ts"

// Finds decisions about this file or symbol, and whether they are still valid.

const MAX_READ = 10
const MAX_CANDIDATES = 3
const MAX_QUOTE_LENGTH = 300

export const findDecision: Finder = ({ knowledge }, moment, session) => {
  const isRequested = moment.event === "asked"
  const found = subjectsOf(knowledge, moment)
    .flatMap((subject) => decisionsAbout(knowledge, moment, subject).map((decision) => ({ decision, subject })))
    .filter(({ decision: { conversation } }) => conversation === undefined || conversation !== moment.session)
    .filter(({ decision }) => (isRequested || mayBeShown(decision)) && (decision.at ?? 0) <= moment.at)
  return (isRequested ? found : found.slice(0, MAX_CANDIDATES)).map(({ decision, subject }): Candidate => {
    const day = decision.at === undefined ? "before" : `on ${localDay(decision.at)}`
    const { about } = subject
    return {
      kind: decision.reversed_by ? "warning" : "decision",
      key: `${decision.kind === "note" && !decision.reversed_by ? NOTE_PREFIX : "decision:"}${decision.key}`,
      ...(isRequested ? wordsOnRequest(decision) : pushedWords(decision, about)),
      reason: `${decision.kind === "note" ? notedBy(decision) : statedBy(decision)} ${day}${reasonEnding(decision, about)}.`,
      ref: decision.ref,
      file: moment.file,
      symbol: moment.symbol ?? subject.symbol,
      names: [...decision.files.map(fileNameOf), ...decision.symbols].filter((name) => name !== about),
      features: isStatedInConversation(decision)
        ? {
            typed: decision.origin === "person" ? 1 : 0,
            names: Math.log1p(decision.files.length + decision.symbols.length),
            within_weeks: Math.exp(-Math.max(0, moment.at - (decision.at ?? 0)) / (14 * DAY_MS)),
            done: Math.log1p(session.files.length),
          }
        : {},
    }
  })
}

type Words = Pick<Candidate, "title" | "summary">

function pushedWords({ kind, quote, reversed_by }: KnownDecision, about: string): Words {
  const then = `"${cutQuote(quote)}"`
  if (!reversed_by)
    return { title: `${kind === "note" ? "Noted" : "Decided"}: ${beginningOf(quote, MAX_TITLE_LENGTH)}`, summary: then }
  const since = mayBeShown(reversed_by) ? ` Since: "${cutQuote(reversed_by.quote)}"` : ""
  return { title: `A decision about ${about} was reversed since`, summary: `Then: ${then}${since}` }
}

/** The title says everything that has room in it, and the summary the rest. */
function wordsOnRequest({ kind, quote, reversed_by }: KnownDecision): Words {
  const beginning = beginningOf(quote, MAX_REQUESTED_TITLE_LENGTH)
  const then = `"${cutQuote(quote)}"`
  if (!reversed_by) return { title: `${kind === "note" ? "Noted" : "Decided"}: ${beginning}`, summary: then }
  const since = `Since: "${cutQuote(reversed_by.quote)}"`
  return { title: `Reversed since: ${beginning}`, summary: beginning === quote ? since : `Then: ${then} ${since}` }
}

/** Only such decisions were labelled. */
function isStatedInConversation({ origin }: KnownDecision): boolean {
  return origin === "person" || origin === "agent"
}

/** A file or a symbol, with the name by which a person calls it. */
type Subject = { about: string; file?: string; symbol?: string }

const MAX_DEFINITIONS = 50

/** The moment's symbol or file. On request both, and the symbols that only this file exports. */
function subjectsOf(knowledge: Knowledge, { event, project, file, symbol }: Moment): Subject[] {
  const subjects: Subject[] = symbol === undefined ? [] : [{ about: symbol, symbol }]
  if (file === undefined || (symbol !== undefined && event !== "asked")) return subjects
  subjects.push({ about: fileNameOf(file), file })
  if (event !== "asked") return subjects
  const { symbols, decisions } = knowledge
  const [, stem] = namesOf({ file })
  const exported = symbols
    .definitionsIn(project, file)
    .filter(({ exported, container }) => exported && container === undefined)
    .slice(0, MAX_DEFINITIONS)
    .map(({ name }) => name)
  const own = decisions
    .symbolsDecidedOn(exported)
    .filter((name) => symbols.definitionsNamed(project, name, 2).length < 2)
  const names = new Set([...(stem === undefined ? [] : [stem]), ...own])
  if (symbol !== undefined) names.delete(symbol)
  return [...subjects, ...[...names].map((name) => ({ about: name, symbol: name }))]
}

/** Newest first. On request, notes are never left out in favour of newer decisions. */
function decisionsAbout(knowledge: Knowledge, { event, project }: Moment, { file, symbol }: Subject): KnownDecision[] {
  const isRequested = event === "asked"
  const filter = {
    with_commits: isRequested,
    project,
    exactly: true,
    symbol: symbol?.toLowerCase(),
    file,
    limit: MAX_READ,
  }
  const { decisions, total } = knowledge.decisions.knownDecisions(filter)
  if (!isRequested || total <= MAX_READ) return decisions
  const notes = knowledge.decisions.knownDecisions({ ...filter, kind: "note" }).decisions
  const keys = new Set(decisions.map(({ key }) => key))
  return [...decisions, ...notes.filter(({ key }) => !keys.has(key))]
}

const ORIGIN_TEXTS = {
  person: "said it",
  agent: "approved it",
} as const

function statedBy({ origin, imported_from }: KnownDecision): string {
  if (origin === "document") return "A decision record says it"
  return origin === "commit" ? "A commit says it" : `${speakerName(imported_from)} ${ORIGIN_TEXTS[origin]}`
}

function reasonEnding({ quote, origin, kind }: KnownDecision, about: string): string {
  if (kind === "note") return ` for ${about}`
  return quote.includes(about)
    ? ` about ${about}`
    : `, and ${about} was named with it or edited ${origin === "commit" ? "in it" : "after it"}`
}

type Provenance = Pick<KnownDecision, "origin" | "is_own_words" | "imported_from">

/**
 * Whether a decision may be shown unasked: a person's words may, and an agent's words if they cannot contain a stranger's. A history
 * that was imported may contain anything.
 */
export function mayBeShown({ origin, is_own_words, imported_from }: Provenance): boolean {
  return imported_from === undefined && (origin === "person" || (origin === "agent" && is_own_words))
}

const MAX_TITLE_LENGTH = 80
/** On request, a title may take two lines, so that it usually says everything. */
const MAX_REQUESTED_TITLE_LENGTH = 140

function cutQuote(quote: string): string {
  return quote.length <= MAX_QUOTE_LENGTH ? quote : `${quote.slice(0, MAX_QUOTE_LENGTH)}…`
}

export const NOTE_PREFIX = "note:"
const MAX_NOTES = 20

/** The person's notes for the project. A note for a file is shown with the file's decisions. */
export const findNote: Finder = ({ knowledge }, moment) => {
  if (moment.event !== "session_start" && moment.event !== "asked") return []
  if (moment.file !== undefined || moment.symbol !== undefined || moment.error !== undefined) return []
  return knowledge.decisions
    .knownDecisions({ project: moment.project, exactly: true, kind: "note", limit: MAX_NOTES })
    .decisions.filter(({ files, reversed_by, at }) => files.length === 0 && !reversed_by && (at ?? 0) <= moment.at)
    .filter((note) => moment.event === "asked" || note.imported_from === undefined)
    .slice(0, MAX_CANDIDATES)
    .map(
      (note): Candidate => ({
        kind: "decision",
        key: `${NOTE_PREFIX}${note.key}`,
        ...(moment.event === "asked"
          ? wordsOnRequest(note)
          : {
              title: `Noted ${note.at === undefined ? "before" : `on ${localDay(note.at)}`} for this project`,
              summary: `"${cutQuote(note.quote)}"`,
            }),
        reason: `${notedBy(note)} for the whole project.`,
        ref: note.ref,
        names: note.symbols,
        features: {
          typed: note.origin === "person" ? 1 : 0,
          names: Math.log1p(note.symbols.length),
          within_weeks: Math.exp(-Math.max(0, moment.at - (note.at ?? 0)) / (14 * DAY_MS)),
        },
      }),
    )
}

function notedBy({ origin, imported_from }: Pick<KnownDecision, "origin" | "imported_from">): string {
  if (origin === "person") return `${speakerName(imported_from)} noted it`
  return `An agent noted it, and ${speakerName(imported_from, "the developer")} confirmed it,`
}
