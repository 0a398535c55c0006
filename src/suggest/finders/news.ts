import { localMinute } from "../../core/dates.ts"
import { fileNameOf, isPlainPath } from "../../learn/paths.ts"
import type { Candidate, Finder } from "./finder.ts"

// What was committed since somebody last worked here.

const MOST_COMMITS = 20
const MOST_FILES = 3
/** Begins the key of what tells of them. */
const SINCE = "since:"

/** Unasked only where it changed what was worked on last. A commit's words are whoever's: they are told to who asks. */
export const findNews: Finder = ({ knowledge }, moment) => {
  const isAsked = moment.event === "asked"
  if (!isAsked && moment.event !== "session_start") return []
  if (moment.file !== undefined || moment.symbol !== undefined || moment.error !== undefined) return []
  const last = knowledge.files.newestWork(moment.project, moment.at, moment.session)
  if (!last) return []
  const commits = knowledge.git
    .commitsSince(moment.project, last.at, MOST_COMMITS)
    .filter(({ at }) => at > last.at && at <= moment.at)
  const [newest] = commits
  if (!newest) return []
  const edited = new Set(
    knowledge.files.workedIn(moment.project, [last]).flatMap(({ path, edits }) => (edits > 0 ? [path] : [])),
  )
  const changed = [...new Set(commits.flatMap(({ hash }) => knowledge.git.filesOfCommit(moment.project, hash)))]
  const files = changed.filter(isPlainPath).sort((a, b) => Number(edited.has(b)) - Number(edited.has(a)))
  const known = files.filter((path) => edited.has(path))
  if (known.length === 0 && !isAsked) return []
  const most = commits.length === MOST_COMMITS ? "at least " : ""
  const count = `${most}${commits.length} ${commits.length === 1 ? "commit" : "commits"}`
  const more = files.length > MOST_FILES ? ` and ${files.length - MOST_FILES} more` : ""
  return [
    {
      kind: "change",
      key: `${SINCE}${newest.hash}`,
      title: `Changed since ${localMinute(last.at)}, when this was last worked on: ${count}, the newest on ${localMinute(newest.at)}`,
      summary: `${files.slice(0, MOST_FILES).join(", ")}${more}${isAsked ? `\n${newest.subject}` : ""}`,
      reason:
        known.length > 0
          ? `${fileNameOf(known[0]!)} was edited then, and has changed since.`
          : "They came after the last conversation here that changed anything.",
      ref: `git:${newest.hash}`,
      names: files.slice(0, MOST_FILES).map(fileNameOf),
      features: {},
    },
  ]
}

/** What happened since somebody last looked: its worth is that it is new, so it has places of its own. */
export function isNews({ kind, key }: Pick<Candidate, "kind" | "key">): boolean {
  return kind === "change" || key.startsWith("failing:")
}

/** News that is told at a session's start, however likely it is to be used: nobody could have labelled it. */
export function isToldUnasked({ key }: Pick<Candidate, "key">): boolean {
  return key.startsWith(SINCE)
}
