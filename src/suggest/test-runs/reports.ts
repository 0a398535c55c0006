import { type Token, Tokenizer } from "parse5"
import { byName } from "../../core/by-name.ts"
import type { ReportedTest } from "../../store/knowledge/test-runs.ts"
import { pathBelow } from "../paths.ts"

export type ParsedReport = { tests: ReportedTest[]; left_out: number }

/** The tokenizer reads a few megabytes a second. */
export const MAX_REPORT_BYTES = 10 << 20
const MOST_TESTS = 50_000
/** Longer than what is kept: what is cut before it is redacted may hold half a secret. */
const LONGEST_NAME = 1_000
const LONGEST_MESSAGE = 2_000
const MOST_DEPTH = 100

/**
 * What a JUnit XML or a vitest or jest JSON report says; undefined where it is none. `writtenAt` is when the file was last
 * written: no result in it can be newer. Pure; never throws.
 */
export function parseReport(text: string, project: string, writtenAt: number): ParsedReport | undefined {
  const start = text.slice(0, 1_000).trimStart()
  const tests = start.startsWith("<") ? junitTests(text, project, writtenAt) : jsonTests(text, project, writtenAt)
  return tests && { tests: tests.slice(0, MOST_TESTS), left_out: Math.max(0, tests.length - MOST_TESTS) }
}

type Suite = { name: string; file?: string; at: number }
type Case = {
  attributes: Map<string, string>
  suite: Suite
  status: ReportedTest["status"]
  message?: string
  /** What stands in the failure itself, where it has no message of its own. */
  text: string
}

/**
 * Read tag by tag with an HTML tokenizer: it knows no entities but its own and opens no address, and no tree is built that
 * could be too deep.
 */
function junitTests(text: string, project: string, writtenAt: number): ReportedTest[] | undefined {
  const tests: ReportedTest[] = []
  const suites: Suite[] = []
  let isReport = false
  let depth = 0
  let current: Case | undefined
  let inProblem = false
  const outside: Suite = { name: "", at: writtenAt }

  const open = ({ tagName, attrs, selfClosing }: Token.TagToken) => {
    depth++
    if (tagName === "testsuites" || tagName === "testsuite") isReport = true
    if (!isReport || depth > MOST_DEPTH) return
    if (tagName === "testsuite") suites.push(suiteOf(attributesOf(attrs), suites.at(-1) ?? outside))
    else if (tagName === "testcase")
      current = { attributes: attributesOf(attrs), suite: suites.at(-1) ?? outside, status: "passed", text: "" }
    else if (current && (tagName === "failure" || tagName === "error")) {
      const message = attributesOf(attrs).get("message")
      current.status = "failed"
      if (message && current.message === undefined) current.message = message
      inProblem = !selfClosing
    } else if (current && tagName === "skipped" && current.status !== "failed") current.status = "skipped"
  }
  const close = (tagName: string) => {
    depth--
    if (tagName === "failure" || tagName === "error") inProblem = false
    if (tagName === "testsuite") suites.pop()
    if (tagName !== "testcase" || !current) return
    if (tests.length <= MOST_TESTS) tests.push(caseOf(current, project))
    current = undefined
    inProblem = false
  }
  const characters = ({ chars }: Token.CharacterToken) => {
    if (inProblem && current && current.text.length < LONGEST_MESSAGE) current.text += chars.slice(0, LONGEST_MESSAGE)
  }
  const tokenizer = new Tokenizer(
    {},
    {
      onStartTag: (token) => {
        open(token)
        if (token.selfClosing) close(token.tagName)
      },
      onEndTag: ({ tagName }) => close(tagName),
      onCharacter: characters,
      onWhitespaceCharacter: characters,
      onNullCharacter: () => {},
      onComment: () => {},
      onDoctype: () => {},
      onEof: () => {},
    },
  )
  // CDATA is text only inside of what is not HTML.
  tokenizer.inForeignNode = true
  tokenizer.write(text, true)
  return isReport ? tests : undefined
}

function attributesOf(attributes: Token.Attribute[]): Map<string, string> {
  return new Map(attributes.map(({ name, value }) => [name, value]))
}

function suiteOf(attributes: Map<string, string>, parent: Suite): Suite {
  const at = Date.parse(attributes.get("timestamp") ?? "")
  const file = attributes.get("file") ?? parent.file
  return {
    name: attributes.get("name") ?? "",
    // A file that was copied or checked out is newer than what it tells.
    at: Number.isNaN(at) ? parent.at : Math.min(at, parent.at),
    ...(file !== undefined && { file }),
  }
}

const IS_FILE = /^[^\s:]*[\w-]\.(?:[cm]?[jt]sx?|py|rb|php|go|rs|java|kt|cs|exs?|swift|vue|svelte)$/

function caseOf({ attributes, suite, status, message, text }: Case, project: string): ReportedTest {
  const [name = "", classname = ""] = [attributes.get("name"), attributes.get("classname")]
  const named = [attributes.get("file"), suite.file, classname, suite.name].find((text) => text && IS_FILE.test(text))
  const file = named === undefined ? undefined : (pathBelow(project, named) ?? named)
  const before = IS_FILE.test(classname) || classname === "" ? (file ?? suite.name) : classname
  const seconds = Number(attributes.get("time"))
  return reported({
    test: before === "" || name.startsWith(before) ? name : `${before} > ${name}`,
    ...(file !== undefined && { file }),
    status,
    message: message ?? text,
    at: suite.at,
    ...(Number.isFinite(seconds) && attributes.has("time") && { duration_ms: Math.round(seconds * 1000) }),
  })
}

function reported({ test, file, message, ...rest }: ReportedTest): ReportedTest {
  const line = message?.trim().split("\n", 1)[0]?.trim()
  return {
    test: test.slice(0, LONGEST_NAME),
    ...(file !== undefined && { file: file.slice(0, LONGEST_NAME) }),
    ...(rest.status === "failed" && line && { message: line.slice(0, LONGEST_MESSAGE) }),
    ...rest,
  }
}

type Fields = Record<string, unknown>
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {})
const stringIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)
const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function jsonTests(text: string, project: string, writtenAt: number): ReportedTest[] | undefined {
  const report = parsed(text)
  if (!Array.isArray(report.testResults)) return undefined
  return report.testResults.flatMap((result: unknown) => {
    const { name, assertionResults, status, message, endTime, startTime } = fieldsOf(result)
    const path = stringIn(name)
    const file = path === undefined ? undefined : (pathBelow(project, path) ?? path)
    const at = Math.min(numberOf(endTime) ?? numberOf(startTime) ?? writtenAt, writtenAt)
    const common = { ...(file !== undefined && { file }), at }
    const tests = listOf(assertionResults).map((one) => assertionOf(fieldsOf(one), common))
    if (tests.length > 0 || status !== "failed" || file === undefined) return tests
    return [
      reported({ test: file, ...common, status: "failed", ...(stringIn(message) && { message: stringIn(message)! }) }),
    ]
  })
}

const JSON_STATUS: Record<string, ReportedTest["status"]> = { passed: "passed", failed: "failed" }

function assertionOf(one: Fields, common: { file?: string; at: number }): ReportedTest {
  const titles = [...listOf(one.ancestorTitles), one.title].flatMap((title) => stringIn(title) || [])
  const name = titles.length > 0 ? titles.join(" > ") : (stringIn(one.fullName) ?? "")
  const message = stringIn(listOf(one.failureMessages)[0])
  const duration = numberOf(one.duration)
  return reported({
    test: common.file === undefined ? name : `${common.file} > ${name}`,
    ...common,
    status: byName(JSON_STATUS, stringIn(one.status) ?? "") ?? "skipped",
    ...(message !== undefined && { message }),
    ...(duration !== undefined && { duration_ms: Math.round(duration) }),
  })
}

function parsed(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return {} // not JSON, so no report
  }
}
