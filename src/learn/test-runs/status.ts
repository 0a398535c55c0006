import { formatRef } from "../../core/ref.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { KnownTestRun } from "../../store/knowledge/test-runs.ts"

/** A test that failed in its last known run. dex does not run it again to check. */
export type FailingTest = {
  test: string
  file?: string
  message?: string
  at: number
  /** The run that failed. */
  ref: string
  command: string
  /** True if the message cannot contain a stranger's words. */
  is_own_words: boolean
}

/** A run that failed without naming its tests. */
export type FailingRun = {
  command: string
  failed: number
  at: number
  ref: string
  is_own_words: boolean
}

export type TestStatus = { tests: FailingTest[]; runs: FailingRun[] }

/** The maximum number of runs that are considered, newest first. */
const MAX_RUNS = 500

/**
 * Returns the failing tests of a project, and the failing runs that named no tests, each newest first. The newest run of a test
 * decides.
 */
export function failingTests(db: Knowledge, project: string, file?: string): TestStatus {
  const openFailures = new Map<string, OpenFailure>()
  for (const run of db.tests.testRuns(project, MAX_RUNS)) updateOpenFailures(openFailures, run)
  const remaining = [...openFailures.values()]
    .filter((one) => file === undefined || concerns(one, file))
    .sort((a, b) => b.failure.at - a.failure.at)
  return {
    tests: remaining.flatMap(({ failure: { test, ...rest } }) => (test === undefined ? [] : [{ test, ...rest }])),
    runs: remaining.flatMap(({ failure, run }) =>
      failure.test === undefined
        ? [{ command: run.command, failed: run.failed, at: run.at, ref: refOf(run), is_own_words: run.is_own_words }]
        : [],
    ),
  }
}

type OpenFailure = { failure: Omit<FailingTest, "test"> & { test?: string }; run: KnownTestRun }

function updateOpenFailures(openFailures: Map<string, OpenFailure>, run: KnownTestRun): void {
  if (run.complete) for (const [key, one] of openFailures) if (covers(run, one)) openFailures.delete(key)
  const { at, command, is_own_words } = run
  const common = { at, command, ref: refOf(run), is_own_words }
  for (const failure of run.failures) {
    openFailures.set(testKey(failure.test), { run, failure: { ...failure, ...common } })
  }
  if (run.outcome === "passed" || run.failures.length > 0) return
  const key = JSON.stringify([run.kind, run.folder, run.targets, run.filter])
  openFailures.set(key, { run, failure: common })
}

const refOf = ({ source, id, number }: KnownTestRun) => formatRef({ source, id, number })

/** The words of a test's name, independent of the runner's format. */
export function testKey(test: string): string {
  return (
    test
      .replaceAll(/\.py\b/g, "")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.join(" ") ?? test
  )
}

/** Whether the run included this failure, so that it would have failed again if nothing was fixed. */
function covers(run: KnownTestRun, one: OpenFailure): boolean {
  return isSameKind(run, one.run) && coversFile(run, one) && matchesFilter(run, one)
}

/**
 * Two different scripts may run different tests. But a runner that was started by hand runs the same tests as a script that
 * starts it, except for separate suites such as integration tests.
 */
function isSameKind(run: KnownTestRun, before: KnownTestRun): boolean {
  if (run.kind === before.kind) return true
  return run.runner === before.runner && run.script !== before.script && suiteIn(run.kind) === suiteIn(before.kind)
}

function suiteIn(kind: string): string | undefined {
  return /(?:^|[^a-z])(integration|e2e|acceptance|system|browser|smoke|slow)(?![a-z])/.exec(kind)?.[1]
}

function coversFile(run: KnownTestRun, { failure, run: before }: OpenFailure): boolean {
  const isBelow = (path: string, folder: string) => folder === "" || path === folder || path.startsWith(`${folder}/`)
  if (run.targets.length === 0 || run.targets.includes(""))
    return run.folder === "" || before.folder === run.folder || isBelow(failure.file ?? "", run.folder)
  const targets = run.targets.map((target) => targetInProject(run, target))
  const isCovered = (path: string) => targets.some((target) => isBelow(path, target) || path.endsWith(`/${target}`))
  if (failure.file?.includes("/") && isCovered(failure.file)) return true
  if (failure.file !== undefined && targets.some((target) => !/[./]/.test(target) && failure.file!.includes(target)))
    return true
  return before.targets.length > 0 && before.targets.every((target) => isCovered(targetInProject(before, target)))
}

function targetInProject({ folder }: KnownTestRun, target: string): string {
  return folder === "" || target.startsWith(`${folder}/`) ? target : `${folder}/${target}`
}

function matchesFilter(run: KnownTestRun, { failure, run: before }: OpenFailure): boolean {
  if (run.filter.length === 0) return true
  if (failure.test === undefined) return before.filter.join("|") === run.filter.join("|")
  const words = ` ${testKey(failure.test)}`
  return run.filter.some((name) => words.includes(testKey(name)))
}

/** Whether a failure concerns a file: the file contains the test or has the same name, or the test names the file. */
function concerns({ failure, run }: OpenFailure, file: string): boolean {
  const testFile = failure.file ?? ""
  if (testFile !== "" && (testFile === file || testFile.endsWith(`/${file}`) || file.endsWith(`/${testFile}`)))
    return true
  if (testFile !== "" && stem(testFile) === stem(file)) return true
  const folder = file.split("/").slice(0, -1).join("/")
  if (testFile === "" && run.runner === "go") return run.targets.some((target) => target === folder)
  return (
    testFile === "" &&
    failure.test !== undefined &&
    ` ${testKey(failure.test)} `.includes(` ${testKey(file.replace(/\.\w+$/, ""))} `)
  )
}

/** Reduces `auth.test.ts`, `auth_test.go`, `test_auth.py`, `AuthTest.java` and `auth.ts` to the same name. */
function stem(path: string): string {
  return path
    .split("/")
    .at(-1)!
    .replace(/\.\w+$/, "")
    .replace(/\.(?:test|spec|e2e|cy|stories)$/i, "")
    .replace(/[_-](?:test|spec)$/i, "")
    .replace(/^(?:test|spec)[_-]/i, "")
    .replace(/(?:Tests?|Spec)$/, "")
    .toLowerCase()
}
