import { DAY_MS, localDay, localMinute } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import { fileNameOf, isPlainPath } from "../../learn/paths.ts"
import { failingTests } from "../../learn/test-runs/status.ts"
import { mayBeShown } from "./decision.ts"
import type { Candidate, Finder } from "./finder.ts"

// Finds what the last conversation in this project worked on, and failing tests.

const MAX_FILES = 3
const MAX_DECISIONS = 10
const MAX_LENGTH = 160
const HOUR_MS = 3_600_000

export const findOpenWork: Finder = ({ knowledge }, moment, session) => {
  if (moment.event !== "session_start" && moment.event !== "asked") return []
  if (moment.file !== undefined || moment.symbol !== undefined || moment.error !== undefined) return []
  const last = knowledge.files.newestWork(moment.project, moment.at, moment.session)
  if (!last) return []
  const files = knowledge.files
    .filesWorkedOn(moment.project, [last])
    .filter(({ path, edits }) => edits > 0 && isPlainPath(path) && !session.hasMentioned(fileNameOf(path)))
    .sort((a, b) => b.edits - a.edits)
    .slice(0, MAX_FILES)
    .map(({ path }) => path)
  if (files.length === 0) return []
  const hours = Math.max(0, moment.at - last.at) / HOUR_MS
  const onBranch = last.branch !== undefined && last.branch === moment.branch
  const [failedTest] = failingTests(knowledge, moment.project).tests.filter(
    (test) => test.is_own_words && test.at <= moment.at,
  )
  const [lastDecision] = knowledge.decisions
    .knownDecisions({
      project: moment.project,
      exactly: true,
      limit: MAX_DECISIONS,
    })
    .decisions.filter(({ reversed_by, at }) => !reversed_by && (at ?? 0) <= moment.at)
  // Consider only the last decision: if it may not be shown, an older one would be misleading.
  const isShown = lastDecision !== undefined && (moment.event === "asked" || mayBeShown(lastDecision))
  const titleText = last.title !== undefined ? `: "${last.title.slice(0, 100)}"` : ""
  return [
    {
      kind: "conversation",
      key: `work:${last.source}:${last.root}`,
      title: `Last worked on here on ${localMinute(last.at)}${titleText}`,
      summary: [
        `Edited ${files.join(", ")}.`,
        ...(failedTest ? [`Failing when last seen: ${failedTest.test.slice(0, MAX_LENGTH)}.`] : []),
        ...(isShown ? [`Decided last: "${lastDecision.quote.slice(0, MAX_LENGTH)}"`] : []),
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

const MAX_NAMED = 3

/** Tests that failed in their last known run: of this file, or of the project when a session begins. */
export const findFailingTests: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined && moment.event !== "session_start" && moment.event !== "asked") return []
  if (moment.error !== undefined || (file === undefined && moment.symbol !== undefined)) return []
  const tests = failingTests(knowledge, moment.project, file).tests.filter(
    ({ at, ref, test, is_own_words }) =>
      at <= moment.at &&
      !ref.includes(`:${moment.session}#`) &&
      isName(test) &&
      (moment.event === "asked" || is_own_words),
  )
  const [newest] = tests
  if (!newest) return []
  const namedTests = tests.slice(0, MAX_NAMED)
  const moreText = tests.length > namedTests.length ? ` and ${tests.length - namedTests.length} more` : ""
  const scope = file === undefined ? "in this project" : `of ${fileNameOf(file)}`
  const candidate: Candidate = {
    kind: "warning",
    key: `failing:${namedTests.map(({ test }) => test).join("\n")}`,
    title: `Failing ${scope} when last seen, on ${localDay(newest.at)}: ${namedTests.map(({ test }) => test).join(", ")}${moreText}`,
    summary: newest.is_own_words && newest.message !== undefined ? newest.message.slice(0, 200) : "",
    reason: `${tests.length === 1 ? "It" : "They"} failed in a run of the tests, and no later known run passed.`,
    ref: newest.ref,
    file: newest.file,
    names: namedTests.flatMap(({ test, file }) => [lastWord(test), ...(file === undefined ? [] : [fileNameOf(file)])]),
    features: {
      tests: Math.log1p(tests.length),
      within_days: Math.exp(-Math.max(0, moment.at - newest.at) / (2 * DAY_MS)),
      of_file: file === undefined ? 0 : 1,
      done: Math.log1p(session.files.length),
    },
  }
  return [candidate]
}

/** True if the text is short enough to be a test's name. A longer text may contain a stranger's words. */
function isName(test: string): boolean {
  return test.length <= 120
}

function lastWord(test: string): string {
  return test.split(/[\s/>]+|::/).at(-1) ?? test
}
