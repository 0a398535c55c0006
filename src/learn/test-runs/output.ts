/** A failed test as named in the output. */
export type FailedTest = { test: string; file?: string; message?: string }

export type TestOutput = {
  /** The runner that has this output format. */
  runner: string
  failed: number
  passed?: number
  /** The failed tests in the order of the output, each once. */
  failures: FailedTest[]
  /** True if the output states how many tests failed, so that dex can tell if it lacks some of their names. */
  counted: boolean
}

/**
 * How many characters are parsed at the beginning and at the end of an output. The beginning contains the names of the tests, and
 * the end contains the counts.
 */
const HEAD_CHARS = 60_000
const TAIL_CHARS = 60_000
const MAX_FAILURES = 100
const MAX_NAME_LENGTH = 300
const MAX_MESSAGE_LENGTH = 300
/** The longest line that is parsed, in characters. Longer lines are data that a program printed. */
const MAX_LINE_LENGTH = 2_000
/** Terminal escape sequences: colours, titles, links. */
const ESCAPE = /\u001b(?:\[[0-9;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g

const LONG_LINE = new RegExp(`(.{1,${MAX_LINE_LENGTH}}).*`, "g")

/** Parses the results of tests. Returns undefined if the output contains none. Pure; never throws. */
export function parseTestOutput(output: string): TestOutput | undefined {
  const shortened =
    output.length <= HEAD_CHARS + TAIL_CHARS ? output : `${output.slice(0, HEAD_CHARS)}\n${output.slice(-TAIL_CHARS)}`
  const text = shortened.replaceAll(ESCAPE, "").replaceAll("\r\n", "\n").replaceAll(LONG_LINE, "$1")
  for (const format of OUTPUT_FORMATS) {
    const counts = format.counts(text)
    if (counts === undefined) continue
    const failures = counts.failed === 0 ? [] : uniqueFailures(format.failures(text))
    return {
      runner: format.runner,
      counted: true,
      ...counts,
      failed: Math.max(counts.failed, failures.length),
      failures,
    }
  }
  return undefined
}

type Counts = { failed: number; passed?: number; counted?: boolean }
type OutputFormat = { runner: string; counts(text: string): Counts | undefined; failures(text: string): FailedTest[] }

const JS_FILE = String.raw`[^\s:>›]+\.[cm]?[jt]sx?`

const OUTPUT_FORMATS: readonly OutputFormat[] = [
  {
    runner: "vitest",
    counts: (text) => {
      if (!/^ *Test Files {2}/m.test(text)) return undefined
      const files = numberBefore(lineWith(text, /^ *Test Files {2}.*$/gm), "failed")
      const tests = lineWith(text, /^ *Tests {2}.*$/gm)
      return { failed: Math.max(files, numberBefore(tests, "failed")), passed: numberBefore(tests, "passed") }
    },
    failures: (text) =>
      matchFailures(
        text,
        new RegExp(
          String.raw`^ *FAIL +(?:\|[^|\n]+\| +)?(?<file>${JS_FILE})(?: +\[[^\]\n]*\])?(?: > (?<name>.+))?$`,
          "gm",
        ),
      ),
  },
  {
    runner: "jest",
    counts: (text) => {
      if (!/^Tests: +/m.test(text) || !/^Test Suites: +/m.test(text)) return undefined
      const suites = numberBefore(lineWith(text, /^Test Suites: .*$/gm), "failed")
      const tests = lineWith(text, /^Tests: .*$/gm)
      return { failed: Math.max(suites, numberBefore(tests, "failed")), passed: numberBefore(tests, "passed") }
    },
    failures: jestFailures,
  },
  {
    runner: "pytest",
    counts: (text) => {
      const line = lineWith(
        text,
        /^(?:=+ )?(?:\d+ (?:failed|passed|error|errors|skipped|xfailed|xpassed|warnings?|deselected|rerun)(?:, |(?= in )))+ ?in [\d.]+s.*$/gm,
      )
      if (line === "") return undefined
      const failed = numberBefore(line, "failed") + numberBefore(line, "errors?")
      return { failed, passed: numberBefore(line, "passed") }
    },
    failures: (text) =>
      matchFailures(text, /^(?:FAILED|ERROR) (?<file>[^\s:]+\.py)(?:::(?<name>.+?))?(?: - (?<message>.*))?$/gm),
  },
  {
    runner: "cargo",
    counts: (text) => {
      const summaries = [...text.matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed;/gm)]
      if (summaries.length === 0) return undefined
      const sum = (group: number) => summaries.reduce((total, match) => total + Number(match[group]), 0)
      return { failed: sum(2), passed: sum(1) }
    },
    failures: (text) => [
      ...matchFailures(text, /^test (?<name>\S.*?) \.\.\. FAILED$/gm),
      ...matchFailures(text.slice(Math.max(0, text.lastIndexOf("\nfailures:\n"))), /^ {4}(?<name>\w+(?:::\w+)*)$/gm),
    ],
  },
  {
    runner: "nextest",
    counts: (text) => {
      const line = lineWith(text, /^ *Summary \[.*tests? run: .*$/gm)
      return line === "" ? undefined : { failed: numberBefore(line, "failed"), passed: numberBefore(line, "passed") }
    },
    failures: (text) => matchFailures(text, /^ *(?:FAIL|SIGABRT|TIMEOUT) \[[^\]\n]*\] (?<name>\S.*)$/gm),
  },
  {
    runner: "rspec",
    counts: (text) => {
      const [, passed, failed] = /^(\d+) examples?, (\d+) failures?/m.exec(text) ?? []
      return failed === undefined ? undefined : { failed: Number(failed), passed: Number(passed) - Number(failed) }
    },
    failures: (text) => matchFailures(text, /^rspec (?:\.\/)?(?<file>[^\s:[]+)(?:[:[]\S*)? # (?<name>.+)$/gm),
  },
  {
    runner: "phpunit",
    counts: (text) => {
      const passed = /^OK \((\d+) tests?, /m.exec(text)?.[1]
      if (passed !== undefined) return { failed: 0, passed: Number(passed) }
      const line = lineWith(text, /^Tests: \d+, Assertions: \d+.*$/gm)
      if (line === "") return undefined
      return { failed: numberAfter(line, "Failures") + numberAfter(line, "Errors") }
    },
    failures: (text) => matchFailures(text, /^\d+\) (?<name>[\w\\]+::\w+.*)$/gm),
  },
  {
    runner: "dotnet",
    counts: (text) => {
      const summaries = [...text.matchAll(/\bFailed: +(\d+), Passed: +(\d+)/g)]
      if (summaries.length === 0) return undefined
      const sum = (group: number) => summaries.reduce((total, match) => total + Number(match[group]), 0)
      return { failed: sum(1), passed: sum(2) }
    },
    failures: (text) => matchFailures(text, /^ *(?:Failed|X) (?<name>[\w.]+(?:\(.*\))?) \[[^[\]\n]+\]$/gm),
  },
  {
    runner: "maven",
    counts: (text) => {
      const line = [
        ...text.matchAll(/^(?:\[\w+\] )?(?:\[ERROR\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+)/gm),
      ].at(-1)
      if (!line) return undefined
      const failed = Number(line[2]) + Number(line[3])
      return { failed, passed: Number(line[1]) - failed }
    },
    failures: (text) => matchFailures(text, /^\[ERROR\] {3}(?<name>[\w.$]+\.\w+):\d+(?: (?<message>.*))?$/gm),
  },
  {
    runner: "gradle",
    counts: (text) => {
      const [, all, failed] = /^(\d+) tests? completed, (\d+) failed/m.exec(text) ?? []
      if (failed !== undefined) return { failed: Number(failed), passed: Number(all) - Number(failed) }
      return /^BUILD SUCCESSFUL/m.test(text) && /^> Task :\S*[tT]est/m.test(text) ? { failed: 0 } : undefined
    },
    failures: (text) => matchFailures(text, /^(?<name>[\w.$]+ > .+) FAILED$/gm),
  },
  {
    runner: "node",
    counts: (text) => {
      const [failed, passed] = ["fail", "pass"].map(
        (word) => new RegExp(String.raw`^[#ℹ] ${word} (\d+)$`, "m").exec(text)?.[1],
      )
      return failed === undefined ? undefined : { failed: Number(failed), passed: Number(passed ?? 0) }
    },
    failures: (text) =>
      matchFailures(
        afterHeading(text, "✖ failing tests:"),
        /^ *(?:✖ (?!failing tests)(?<name>.+?) \([\d.]+ms\)|not ok \d+ - (?<tap>.+))$/gm,
      ),
  },
  {
    runner: "bun",
    counts: (text) => {
      const failed = /^ *(\d+) fail$/m.exec(text)?.[1]
      return failed === undefined
        ? undefined
        : { failed: Number(failed), passed: Number(/^ *(\d+) pass$/m.exec(text)?.[1] ?? 0) }
    },
    failures: (text) => matchFailures(text, /^\(fail\) (?<name>.+?)(?: \[[\d.]+m?s\])?$/gm),
  },
  {
    runner: "mocha",
    counts: (text) => {
      const passed = /^ *(\d+) passing(?: \(.*\))?$/m.exec(text)?.[1]
      const failed = /^ *(\d+) failing$/m.exec(text)?.[1]
      return passed === undefined && failed === undefined
        ? undefined
        : { failed: Number(failed ?? 0), passed: Number(passed ?? 0) }
    },
    failures: mochaFailures,
  },
  {
    runner: "playwright",
    counts: (text) => {
      const passed = /^ {2}(\d+) passed \([\d.]+m?s?\)$/m.exec(text)?.[1]
      const failed = /^ {2}(\d+) failed$/m.exec(text)?.[1]
      return passed === undefined && failed === undefined
        ? undefined
        : { failed: Number(failed ?? 0), passed: Number(passed ?? 0) }
    },
    failures: (text) =>
      matchFailures(
        text,
        new RegExp(String.raw`^ +\d+\) (?:\[[^\]\n]+\] › )?(?<file>${JS_FILE}):\d+:\d+ › (?<name>.+)$`, "gm"),
      ).map((failed) => ({ ...failed, test: withoutRule(failed.test) })),
  },
  {
    runner: "unittest",
    counts: (text) => {
      const total = /^Ran (\d+) tests? in /m.exec(text)?.[1]
      if (total === undefined) return undefined
      const line = lineWith(text, /^FAILED \(.*\)$/gm)
      const failed = ["failures", "errors"].reduce(
        (sum, word) => sum + Number(new RegExp(`${word}=(\\d+)`).exec(line)?.[1] ?? 0),
        0,
      )
      return { failed, passed: Number(total) - failed }
    },
    failures: (text) =>
      [...text.matchAll(/^(?:FAIL|ERROR): (\w+) \(([\w.]+?)(?:\.\1)?\)/gm)].map(([, name, at]) => ({
        test: `${at}.${name}`,
      })),
  },
  {
    runner: "go",
    counts: (text) => {
      if (/^testing: warning: no tests to run$/m.test(text) && !/^--- (?:PASS|FAIL)/m.test(text)) return undefined
      // If the package could not be set up, nothing was tested.
      if (/^FAIL\s.*\[setup failed\]$/m.test(text) && !/^--- |^ok\s/m.test(text)) return undefined
      const failed = [...text.matchAll(/^--- FAIL: /gm)].length
      const passed = [...text.matchAll(/^--- PASS: /gm)].length
      if (failed > 0 || /^FAIL(?:\s|$)/m.test(text))
        return { failed: Math.max(1, failed), counted: false, passed: passed || undefined }
      return /^ok {2}\t\S+\t|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))|^PASS$/m.test(text)
        ? { failed: 0, counted: false, passed: passed || undefined }
        : undefined
    },
    failures: goFailures,
  },
]

function matchFailures(text: string, form: RegExp): FailedTest[] {
  return [...text.matchAll(form)].map(({ groups, index, 0: line }) => {
    const { file, name, tap, message } = groups as Record<string, string | undefined>
    const reason = message ?? messageAfter(text, index + line.length)
    const testName = name ?? tap
    return {
      test: testName === undefined ? (file ?? "") : file === undefined ? testName : `${file} > ${testName}`,
      file,
      message: reason || undefined,
    }
  })
}

/**
 * Returns the text from the last occurrence of the heading on, or the complete text if there is none. Above the heading, node
 * also lists the suites of failed tests.
 */
function afterHeading(text: string, heading: string): string {
  return text.slice(Math.max(0, text.lastIndexOf(heading)))
}

/** Removes the horizontal line that a runner draws after a name. */
function withoutRule(name: string): string {
  let end = name.length
  while (name[end - 1] === "─") end--
  return name.slice(0, end).trimEnd()
}

/** Returns the line after a test's name, if it is an error message. */
function messageAfter(text: string, at: number): string | undefined {
  const line = text
    .slice(at + 1, at + 1 + 2 * MAX_MESSAGE_LENGTH)
    .split("\n", 1)[0]!
    .trim()
  return /^\w*(?:Error|Exception|Failure)\b.*|^expected\b/i.test(line) ? line : undefined
}

/** Parses jest's output, which names a file once, then its tests. The file itself counts if none of its tests is named. */
function jestFailures(text: string): FailedTest[] {
  const failures: FailedTest[] = []
  let file: string | undefined
  for (const { groups } of text.matchAll(
    new RegExp(String.raw`^(?:FAIL (?:\S+ )?(?<file>${JS_FILE})(?: \([\d.]+ m?s\))?| {2}● (?<name>\S.*))$`, "gm"),
  )) {
    if (groups!.file !== undefined) {
      file = groups!.file
      failures.push({ test: file, file })
    } else if (groups!.name === "Test suite failed to run") continue
    else
      failures.push({
        test: file === undefined ? groups!.name! : `${file} > ${groups!.name}`,
        file,
      })
  }
  return failures
}

function mochaFailures(text: string): FailedTest[] {
  const from = /^ *\d+ failing$/m.exec(text)?.index ?? 0
  return [
    ...text.slice(from).matchAll(/^ {2}\d+\) (?<suite>.+)\n(?<rest>(?: {5,}\S.*\n){0,8}?) {5,}(?<name>\S.*):\n/gm),
  ].map(({ groups }) => {
    const between = groups!.rest!.split("\n").map((line) => line.trim())
    return { test: [groups!.suite!, ...between, groups!.name!].filter((name) => name !== "").join(" > ") }
  })
}

/** Parses Go's output. A test's parents fail with it, so only the innermost is reported. */
function goFailures(text: string): FailedTest[] {
  const matches = [
    ...text.matchAll(
      /^ *--- FAIL: (?<name>\S.*?) \([\d.]+s\)\n?(?: +(?<file>[\w.-]+_test\.go):\d+: *(?<message>.*))?/gm,
    ),
  ]
  const parents = new Set(matches.flatMap(({ groups }) => parentsOf(groups!.name!)))
  return matches.flatMap(({ groups }) => {
    const { name, file, message } = groups as { name: string; file?: string; message?: string }
    if (parents.has(name)) return []
    return [{ test: name, file, message: message?.trim() || undefined }]
  })
}

/** Returns `a` and `a/b` for `a/b/c`. */
function parentsOf(name: string): string[] {
  return [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index))
}

function uniqueFailures(failures: FailedTest[]): FailedTest[] {
  const filesOfTests = new Set(
    failures.flatMap(({ test, file }) => (file !== undefined && test !== file ? [file] : [])),
  )
  const seenNames = new Set<string>()
  return failures
    .filter(({ test, file }) => test !== "" && !(test === file && filesOfTests.has(file)))
    .filter(({ test }) => !seenNames.has(test) && seenNames.add(test))
    .slice(0, MAX_FAILURES)
    .map(({ test, file, message }) => ({
      test: test.trim().slice(0, MAX_NAME_LENGTH),
      file: file?.slice(0, MAX_NAME_LENGTH),
      message: message?.slice(0, MAX_MESSAGE_LENGTH),
    }))
}

/** Returns the last matching line, because watchers and retries print several. */
function lineWith(text: string, form: RegExp): string {
  return [...text.matchAll(form)].at(-1)?.[0] ?? ""
}

function numberBefore(line: string, word: string): number {
  return Number(new RegExp(String.raw`(?<!\d)(\d+) ${word}\b`).exec(line)?.[1] ?? 0)
}

function numberAfter(line: string, word: string): number {
  return Number(new RegExp(String.raw`\b${word}: (\d+)`).exec(line)?.[1] ?? 0)
}
