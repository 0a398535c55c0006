import { DAY_MS, localDay, localMinute } from "../../core/dates.ts"
import { fileNameOf, isPlainPath } from "../../learn/paths.ts"
import type { Candidate, Finder } from "./finder.ts"

// Finds items in git: recent changes of this file, files that change with it, and commits since somebody last worked here.

const MAX_COMMITS = 2
const MAX_TOGETHER = 4
/** The fewest commits that must change both files. Fewer may be chance. */
const MIN_TOGETHER = 3
const RECENT_DAYS = 7

/** Recent changes of the file. Anybody may have written a commit's subject, so it is shown only on request. */
export const findChange: Finder = ({ knowledge, recent_change_days = RECENT_DAYS }, moment) => {
  const { file } = moment
  if (file === undefined) return []
  const since = moment.at - recent_change_days * DAY_MS
  return knowledge.git
    .commitsTouching(moment.project, file, { since, limit: MAX_COMMITS })
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

/** Files of the same commits. Shown only on request, because nobody has labelled yet how useful they are unasked. */
export const findCommittedTogether: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined || moment.event !== "asked") return []
  return knowledge.git
    .changedTogether(moment.project, file, MAX_TOGETHER)
    .filter(({ path, together }) => together >= MIN_TOGETHER && isPlainPath(path) && !session.files.includes(path))
    .map(
      ({ path, together, own, newest }): Candidate => ({
        kind: "related_code",
        key: `file:${path}`,
        title: path,
        summary: `Changed in ${together} of the ${own} commits that changed ${fileNameOf(file)}, last on ${localDay(newest)}.`,
        reason: `According to git, ${fileNameOf(file)} and ${fileNameOf(path)} change together.`,
        file: path,
        names: [fileNameOf(path)],
        features: { committed_together: together / (own + 1.5) },
      }),
    )
}

const MAX_NEWS = 20
const MAX_FILES = 3
/** The prefix of the keys of news. */
const NEWS_PREFIX = "since:"

/**
 * Commits since the last work here. Shown unasked only if they changed the files last worked on. Anybody may have written a
 * subject, so it is shown only on request.
 */
export const findNews: Finder = ({ knowledge }, moment) => {
  const isRequested = moment.event === "asked"
  if (!isRequested && moment.event !== "session_start") return []
  if (moment.file !== undefined || moment.symbol !== undefined || moment.error !== undefined) return []
  const last = knowledge.files.newestWork(moment.project, moment.at, moment.session)
  if (!last) return []
  const commits = knowledge.git
    .commitsSince(moment.project, last.at, MAX_NEWS)
    .filter(({ at }) => at > last.at && at <= moment.at)
  const [newest] = commits
  if (!newest) return []
  const edited = new Set(
    knowledge.files.filesWorkedOn(moment.project, [last]).flatMap(({ path, edits }) => (edits > 0 ? [path] : [])),
  )
  const changed = [...new Set(commits.flatMap(({ hash }) => knowledge.git.filesOfCommit(moment.project, hash)))]
  const files = changed.filter(isPlainPath).sort((a, b) => Number(edited.has(b)) - Number(edited.has(a)))
  const known = files.filter((path) => edited.has(path))
  if (known.length === 0 && !isRequested) return []
  const atLeast = commits.length === MAX_NEWS ? "at least " : ""
  const count = `${atLeast}${commits.length} ${commits.length === 1 ? "commit" : "commits"}`
  const more = files.length > MAX_FILES ? ` and ${files.length - MAX_FILES} more` : ""
  return [
    {
      kind: "change",
      key: `${NEWS_PREFIX}${newest.hash}`,
      title: `Changed since ${localMinute(last.at)}, when this was last worked on: ${count}, the newest on ${localMinute(newest.at)}`,
      summary: `${files.slice(0, MAX_FILES).join(", ")}${more}${isRequested ? `\n${newest.subject}` : ""}`,
      reason:
        known.length > 0
          ? `${fileNameOf(known[0]!)} was edited then, and has changed since.`
          : "They came after the last conversation here that changed anything.",
      ref: `git:${newest.hash}`,
      names: files.slice(0, MAX_FILES).map(fileNameOf),
      features: {},
    },
  ]
}

/**
 * True for news: something that happened since somebody last looked. It matters because it is new, so places are reserved for it.
 */
export function isNews({ kind, key }: Pick<Candidate, "kind" | "key">): boolean {
  return kind === "change" || key.startsWith("failing:")
}

/** True for news that is shown at a session's start whatever its relevance, because nobody could have labelled it. */
export function isPushedNews({ key }: Pick<Candidate, "key">): boolean {
  return key.startsWith(NEWS_PREFIX)
}
