import { DAY_MS, localDay } from "../../core/dates.ts"
import type { KnownDecision } from "../../store/knowledge/decisions.ts"
import type { Candidate, Finder } from "./finder.ts"

// What the person noted for the whole project. A note for a file is told with what was decided about the file.

/** Begins the key of what tells of one. */
export const NOTE = "note:"
const MOST_LOOKED_AT = 20
const MOST_CANDIDATES = 3
const LONGEST = 300

export const findNote: Finder = ({ knowledge }, moment) => {
  if (moment.event !== "session_start" && moment.event !== "asked") return []
  if (moment.file !== undefined || moment.symbol !== undefined || moment.error !== undefined) return []
  return knowledge.decisions
    .knownDecisions({ project: moment.project, exactly: true, kind: "note", limit: MOST_LOOKED_AT })
    .decisions.filter(({ files, reversed_by, at }) => files.length === 0 && !reversed_by && (at ?? 0) <= moment.at)
    .slice(0, MOST_CANDIDATES)
    .map(
      (note): Candidate => ({
        kind: "decision",
        key: `${NOTE}${note.key}`,
        title: `Noted ${note.at === undefined ? "before" : `on ${localDay(note.at)}`} for this project`,
        summary: `"${note.quote.length <= LONGEST ? note.quote : `${note.quote.slice(0, LONGEST)}…`}"`,
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

export function notedBy({ origin }: Pick<KnownDecision, "origin">): string {
  return origin === "person" ? "The developer noted it" : "An agent noted it, and the developer confirmed it,"
}
