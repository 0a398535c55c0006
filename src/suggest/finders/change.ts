import { DAY_MS, localDay, localMinute } from "../../core/dates.ts"
import { fileNameOf, isPlainPath } from "../../learn/paths.ts"
import type { Candidate, Finder } from "./finder.ts"

// What git says of this file: who changed it lately, and what changes with it.

const MOST_COMMITS = 2
const MOST_TOGETHER = 4
/** Once is chance. */
const LEAST_TOGETHER = 3
const RECENT_DAYS = 7

/** A commit's words are whoever's: they are told to who asks. */
export const findChange: Finder = ({ knowledge, recent_change_days = RECENT_DAYS }, moment) => {
  const { file } = moment
  if (file === undefined) return []
  const since = moment.at - recent_change_days * DAY_MS
  return knowledge.git
    .commitsTouching(moment.project, file, { since, limit: MOST_COMMITS })
    .filter(({ at }) => at <= moment.at)
    .map(({ hash, at, subject, file_count }, i): Candidate => {
      const others = file_count > 1 ? ` with ${file_count - 1} other ${file_count === 2 ? "file" : "files"}` : ""
      return {
        kind: "change",
        key: `git:${hash}`,
        title: `${fileNameOf(file)} was ${i === 0 ? "last" : "also"} changed on ${localMinute(at)} by ${hash.slice(0, 8)}${others}`,
        summary: moment.event === "asked" ? subject : "",
        reason: `A commit of the last ${recent_change_days} days changed this very file.`,
        ref: `git:${hash}`,
        file,
        names: [],
        features: { days: Math.log1p(Math.max(0, moment.at - at) / DAY_MS), size: Math.log1p(file_count) },
      }
    })
}

/** Files of the same commits. Told to who asks: nobody has yet labelled what they are worth unasked. */
export const findCommittedTogether: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined || moment.event !== "asked") return []
  return knowledge.git
    .changedTogether(moment.project, file, MOST_TOGETHER)
    .filter(({ path, together }) => together >= LEAST_TOGETHER && isPlainPath(path) && !session.files.includes(path))
    .map(
      ({ path, together, own, newest }): Candidate => ({
        kind: "related_code",
        key: `file:${path}`,
        title: path,
        summary: `Changed in ${together} of the ${own} commits that changed ${fileNameOf(file)}, last on ${localDay(newest)}.`,
        reason: `Git says that ${fileNameOf(file)} and ${fileNameOf(path)} change together.`,
        file: path,
        names: [fileNameOf(path)],
        features: { committed_together: together / (own + 1.5) },
      }),
    )
}
