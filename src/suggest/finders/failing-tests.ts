import { DAY_MS, localDay } from "../../core/dates.ts"
import { fileNameOf } from "../../learn/paths.ts"
import { failing } from "../../learn/test-runs/status.ts"
import type { Candidate, Finder } from "./finder.ts"

// Tests that failed when they were last seen to run: of this file, or of the project when a session begins.

const MOST_NAMED = 3
export const findFailingTests: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined && moment.event !== "session_start" && moment.event !== "asked") return []
  if (moment.error !== undefined) return []
  const tests = failing(knowledge, moment.project, file).tests.filter(
    ({ at, ref, test, is_own_words }) =>
      at <= moment.at &&
      !ref.includes(`:${moment.session}#`) &&
      isName(test) &&
      (moment.event === "asked" || is_own_words),
  )
  const [newest] = tests
  if (!newest) return []
  const named = tests.slice(0, MOST_NAMED)
  const more = tests.length > named.length ? ` and ${tests.length - named.length} more` : ""
  const of = file === undefined ? "in this project" : `of ${fileNameOf(file)}`
  const candidate: Candidate = {
    kind: "warning",
    key: `failing:${named.map(({ test }) => test).join("\n")}`,
    title: `Failing ${of} when last seen, on ${localDay(newest.at)}: ${named.map(({ test }) => test).join(", ")}${more}`,
    summary: newest.is_own_words && newest.message !== undefined ? newest.message.slice(0, 200) : "",
    reason: `${tests.length === 1 ? "It" : "They"} failed in a run of the tests, and no later run that is known passed.`,
    ref: newest.ref,
    file: newest.file,
    names: named.flatMap(({ test, file }) => [lastWord(test), ...(file === undefined ? [] : [fileNameOf(file)])]),
    features: {
      tests: Math.log1p(tests.length),
      within_days: Math.exp(-Math.max(0, moment.at - newest.at) / (2 * DAY_MS)),
      of_file: file === undefined ? 0 : 1,
      done: Math.log1p(session.files.length),
    },
  }
  return [candidate]
}

/** A test's name is its program's own word; what is long is somebody's text. */
function isName(test: string): boolean {
  return test.length <= 120
}

function lastWord(test: string): string {
  return test.split(/[\s/>]+|::/).at(-1) ?? test
}
