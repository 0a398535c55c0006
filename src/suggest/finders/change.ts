import { DAY_MS, localDay, localMinute } from "../../core/dates.ts"
import { fileNameOf, isPlainPath, isTest, isTestOf } from "../../learn/paths.ts"
import { neighboursOf } from "./code.ts"
import type { Candidate, Finder } from "./finder.ts"

// Finds items in git: recent changes to this file, files that change with it, and commits since somebody last worked here.

const MAX_COMMITS = 2
const MAX_NEIGHBOUR_COMMITS = 20
const MAX_TOGETHER = 4
/** How many commits must have changed both files. Fewer may be chance. */
const MIN_TOGETHER = 3
const RECENT_DAYS = 7

/** Finds recent changes to the file. A commit's subject is shown only on request, because it may contain a stranger's words. */
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
        reason: `A commit in the last ${recent_change_days} days changed this file.`,
        ref: `git:${hash}`,
        file,
        names: [],
        features: { days: Math.log1p(Math.max(0, moment.at - at) / DAY_MS), size: Math.log1p(file_count) },
      }
    })
}

/**
 * Finds recent changes to the files that this one imports, and to those that import or call it. Only on request, like the subjects
 * of their commits.
 */
export const findNeighbourChange: Finder = ({ knowledge, recent_change_days = RECENT_DAYS }, moment) => {
  if (moment.event !== "asked" || (moment.file === undefined && moment.symbol === undefined)) return []
  const neighbours = neighboursOf(knowledge, moment).sort((a, b) => Number(isTest(a.path)) - Number(isTest(b.path)))
  if (neighbours.length === 0) return []
  const paths = neighbours.map(({ path }) => path)
  const commits = knowledge.git
    .commitsTouchingAny(moment.project, paths, {
      except: moment.file ?? "",
      since: moment.at - recent_change_days * DAY_MS,
      limit: MAX_NEIGHBOUR_COMMITS,
    })
    .filter(({ at }) => at <= moment.at)
    .map((commit) => ({ ...commit, changed: neighbours.filter(({ path }) => commit.paths.includes(path)) }))
  // Only the newest commit of each file, and those that changed only tests last.
  const newest = commits.filter(({ changed }, i) => i === commits.findIndex((other) => other.changed[0] === changed[0]))
  return newest
    .sort((a, b) => Number(isTest(a.changed[0]!.path)) - Number(isTest(b.changed[0]!.path)))
    .map(({ hash, at, subject, file_count, changed: [neighbour, ...others] }): Candidate => {
      const { path, relation, effect } = neighbour!
      return {
        kind: "change",
        key: `git:${hash}`,
        title: `${path}, which ${relation}, was changed on ${localMinute(at)}`,
        summary: subject,
        reason:
          others.length === 0
            ? effect
            : `${effect} The commit also changed ${others.length === 1 ? "another related file" : `${others.length} other related files`}.`,
        ref: `git:${hash}`,
        file: path,
        names: [fileNameOf(path)],
        features: { days: Math.log1p(Math.max(0, moment.at - at) / DAY_MS), size: Math.log1p(file_count) },
      }
    })
}

/** Files that changed in the same commits. Shown only on request, because nobody has labelled yet whether they help unasked. */
export const findCommittedTogether: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined || moment.event !== "asked") return []
  return knowledge.git
    .changedTogether(moment.project, file, MAX_TOGETHER)
    .filter(({ path, together }) => together >= MIN_TOGETHER && isPlainPath(path) && !session.files.includes(path))
    .filter(({ path }) => !isTestOf(path, file))
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
/** Keys of news items begin with this prefix. */
const NEWS_PREFIX = "since:"

/**
 * Finds the commits since somebody last worked here. They are shown unasked only if they changed the files last worked on. Their
 * subjects are shown only on request, because they may contain a stranger's words.
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
  const editedFiles = files.filter((path) => edited.has(path))
  if (editedFiles.length === 0 && !isRequested) return []
  const atLeastText = commits.length === MAX_NEWS ? "at least " : ""
  const commitsText = `${atLeastText}${commits.length} ${commits.length === 1 ? "commit" : "commits"}`
  const moreText = files.length > MAX_FILES ? ` and ${files.length - MAX_FILES} more` : ""
  return [
    {
      kind: "change",
      key: `${NEWS_PREFIX}${newest.hash}`,
      title: `Changed since ${localMinute(last.at)}, when this was last worked on: ${commitsText}, the newest on ${localMinute(newest.at)}`,
      summary: `${files.slice(0, MAX_FILES).join(", ")}${moreText}${isRequested ? `\n${newest.subject}` : ""}`,
      reason:
        editedFiles.length > 0
          ? `${fileNameOf(editedFiles[0]!)} was edited then, and has changed since.`
          : "They came after the last conversation here that changed anything.",
      ref: `git:${newest.hash}`,
      names: files.slice(0, MAX_FILES).map(fileNameOf),
      features: {},
    },
  ]
}

/** True for changes and failing tests, which are news since somebody last looked. Some places are reserved for them. */
export function isNews({ kind, key }: Pick<Candidate, "kind" | "key">): boolean {
  return kind === "change" || key.startsWith("failing:")
}

/**
 * True for news that is shown unasked when a session starts. Its relevance does not count, because nobody could have labelled it.
 */
export function isPushedNews({ key }: Pick<Candidate, "key">): boolean {
  return key.startsWith(NEWS_PREFIX)
}
