import { DAY_MS, localDay } from "../../core/dates.ts"
import { fileNameOf } from "../../learn/paths.ts"
import type { KnownDecision } from "../../store/knowledge/decisions.ts"
import type { Candidate, Finder } from "./finder.ts"

// Finds decisions about this file or symbol, and whether they are still valid.

const MAX_READ = 10
const MAX_CANDIDATES = 3
const MAX_QUOTE_LENGTH = 300
export const findDecision: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  const { symbol } = moment
  if (file === undefined && symbol === undefined) return []
  const isRequested = moment.event === "asked"
  const { decisions } = knowledge.decisions.knownDecisions({
    with_commits: isRequested,
    project: moment.project,
    exactly: true,
    symbol: symbol?.toLowerCase(),
    file: symbol === undefined ? file : undefined,
    limit: MAX_READ,
  })
  return decisions
    .filter(({ conversation }) => conversation === undefined || conversation !== moment.session)
    .filter((decision) => (isRequested || mayBeShown(decision)) && (decision.at ?? 0) <= moment.at)
    .slice(0, MAX_CANDIDATES)
    .map((decision): Candidate => {
      const day = decision.at === undefined ? "before" : `on ${localDay(decision.at)}`
      const about = symbol ?? fileNameOf(file!)
      const later = decision.reversed_by
      return {
        kind: later ? "warning" : "decision",
        key: `${decision.kind === "note" && !later ? NOTE_PREFIX : "decision:"}${decision.key}`,
        title: later
          ? `A decision about ${about} was reversed since`
          : `${decision.kind === "note" ? "Noted" : "Decided"}: ${beginningOf(decision.quote)}`,
        summary: later
          ? `Then: "${cut(decision.quote)}"${isRequested || mayBeShown(later) ? ` Since: "${cut(later.quote)}"` : ""}`
          : `"${cut(decision.quote)}"`,
        reason: `${decision.kind === "note" ? notedBy(decision) : ORIGIN_TEXTS[decision.origin]} ${day}${why(decision, about)}.`,
        ref: decision.ref,
        file,
        symbol,
        names: [...decision.files.map(fileNameOf), ...decision.symbols].filter((name) => name !== about),
        features: {
          typed: decision.origin === "person" ? 1 : 0,
          names: Math.log1p(decision.files.length + decision.symbols.length),
          within_weeks: Math.exp(-Math.max(0, moment.at - (decision.at ?? 0)) / (14 * DAY_MS)),
          done: Math.log1p(session.files.length),
        },
      }
    })
}

const ORIGIN_TEXTS = {
  person: "The developer said it",
  agent: "The developer approved it",
  document: "A decision record says it",
  commit: "A commit says it",
} as const

function why({ quote, origin, kind }: KnownDecision, about: string): string {
  if (kind === "note") return ` for ${about}`
  return quote.includes(about)
    ? ` of ${about}`
    : `, and ${about} was named with it or edited ${origin === "commit" ? "in it" : "after it"}`
}

/** True for a person's words, and for an agent's words if they cannot contain a stranger's. */
export function mayBeShown({ origin, is_own_words }: Pick<KnownDecision, "origin" | "is_own_words">): boolean {
  return origin === "person" || (origin === "agent" && is_own_words)
}

const MAX_TITLE_LENGTH = 80

/** The beginning of a quote; the summary has the rest. */
function beginningOf(quote: string): string {
  const [line = ""] = quote.split("\n")
  return line.length <= MAX_TITLE_LENGTH ? line : `${line.slice(0, MAX_TITLE_LENGTH).replace(/\s+\S*$/, "")}…`
}

function cut(quote: string): string {
  return quote.length <= MAX_QUOTE_LENGTH ? quote : `${quote.slice(0, MAX_QUOTE_LENGTH)}…`
}

/** The prefix of a note's key. */
export const NOTE_PREFIX = "note:"
const MAX_NOTES = 20

/** The person's notes for the project. A note for a file is shown with the file's decisions. */
export const findNote: Finder = ({ knowledge }, moment) => {
  if (moment.event !== "session_start" && moment.event !== "asked") return []
  if (moment.file !== undefined || moment.symbol !== undefined || moment.error !== undefined) return []
  return knowledge.decisions
    .knownDecisions({ project: moment.project, exactly: true, kind: "note", limit: MAX_NOTES })
    .decisions.filter(({ files, reversed_by, at }) => files.length === 0 && !reversed_by && (at ?? 0) <= moment.at)
    .slice(0, MAX_CANDIDATES)
    .map(
      (note): Candidate => ({
        kind: "decision",
        key: `${NOTE_PREFIX}${note.key}`,
        title: `Noted ${note.at === undefined ? "before" : `on ${localDay(note.at)}`} for this project`,
        summary: `"${cut(note.quote)}"`,
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

function notedBy({ origin }: Pick<KnownDecision, "origin">): string {
  return origin === "person" ? "The developer noted it" : "An agent noted it, and the developer confirmed it,"
}
