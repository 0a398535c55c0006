import { localMinute } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import { fileNameOf, isPlainPath } from "../../learn/paths.ts"
import { failing } from "../../learn/test-runs/status.ts"
import { isTellable } from "./decision.ts"
import type { Finder } from "./finder.ts"

// What was being worked on in this project when the last conversation ended.

const MOST_FILES = 3
const MOST_DECISIONS = 10
const LONGEST = 160
const HOUR = 3_600_000

export const findOpenWork: Finder = ({ knowledge }, moment, session) => {
  if (moment.event !== "session_start" && moment.event !== "asked") return []
  if (moment.file !== undefined || moment.symbol !== undefined || moment.error !== undefined) return []
  const last = knowledge.files.newestWork(moment.project, moment.at, moment.session)
  if (!last) return []
  const files = knowledge.files
    .workedIn(moment.project, [last])
    .filter(({ path, edits }) => edits > 0 && isPlainPath(path) && !session.named(fileNameOf(path)))
    .sort((a, b) => b.edits - a.edits)
    .slice(0, MOST_FILES)
    .map(({ path }) => path)
  if (files.length === 0) return []
  const hours = Math.max(0, moment.at - last.at) / HOUR
  const onBranch = last.branch !== undefined && last.branch === moment.branch
  const [failed] = failing(knowledge, moment.project).tests.filter((test) => test.is_own_words && test.at <= moment.at)
  const [decided] = knowledge.decisions
    .knownDecisions({
      project: moment.project,
      exactly: true,
      limit: MOST_DECISIONS,
    })
    .decisions.filter(({ reversed_by, at }) => !reversed_by && (at ?? 0) <= moment.at)
  // The last one, or none: an older one that may be told is not the last.
  const isToldHere = decided !== undefined && (moment.event === "asked" || isTellable(decided))
  const titled = last.title !== undefined ? `: "${last.title.slice(0, 100)}"` : ""
  return [
    {
      kind: "conversation",
      key: `work:${last.source}:${last.root}`,
      title: `Last worked on here on ${localMinute(last.at)}${titled}`,
      summary: [
        `Edited ${files.join(", ")}.`,
        ...(failed ? [`Failing when last seen: ${failed.test.slice(0, LONGEST)}.`] : []),
        ...(isToldHere ? [`Decided last: "${decided.quote.slice(0, LONGEST)}"`] : []),
      ].join("\n"),
      reason: onBranch ? "It was on the same branch." : "It is the last conversation here that changed anything.",
      ref: formatRef({ source: last.source, id: last.id }),
      names: files.map(fileNameOf),
      features: {
        start: 1,
        start_on_branch: onBranch ? 1 : 0,
        start_on_main: moment.branch !== undefined && /^(?:main|master|trunk)$/.test(moment.branch) ? 1 : 0,
        start_within_hours: Math.exp(-hours / 3),
        start_within_days: Math.exp(-hours / 48),
      },
    },
  ]
}
