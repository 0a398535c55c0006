import { readFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Effect, Part } from "../../src/core/conversation.ts"
import {
  errorLines,
  errorSimilarity,
  errorText,
  isInformative,
  mayBeSimilar,
  normaliseError,
} from "../../src/core/error-text.ts"
import { type FixEdit, fixesIn, isSimilarCommand } from "../../src/learn/fixes/fixes.ts"
import { findFixes } from "../../src/learn/fixes/like.ts"
import { toStoredFix } from "../../src/learn/learn.ts"
import { patchText } from "../../src/render/patch.ts"
import type { StoredMessage } from "../../src/store/history/store.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { NEW_SESSION } from "../../src/suggest/finders/finder.ts"
import { findFix } from "../../src/suggest/finders/fix.ts"
import { call, PROJECT, put, putSession, SESSION, type Writer, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const RUNS = Number(process.env.DEX_RUNS ?? 100)

describe("an error, masked", () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,8}$/)
  const path = fc
    .tuple(fc.constantFrom("/", "./", "../", "~/", ""), fc.array(name, { minLength: 1, maxLength: 4 }), name)
    .map(([start, folders, file]) => `${start}${folders.join("/")}/${file}.ts`)
  const hash = fc
    .tuple(fc.integer({ min: 0, max: 9 }), fc.stringMatching(/^[0-9a-f]{7,38}$/))
    .map(([digit, rest]) => `a${digit}${rest}`)
  const duration = fc
    .tuple(fc.double({ min: 0, max: 9999, noNaN: true }), fc.constantFrom("ms", "s", " ms", "s"))
    .map(([n, unit]) => `${n.toFixed(2)}${unit}`)
  const whole = fc.nat(99_999)

  test("does not change if it is masked again, whatever it says", () => {
    const bits = fc.constantFrom(
      ..."'\"`/\\.:<> -aé7'<n><path>‘’()\n".split(""),
      "<text>",
      "0x1f",
      "a.ts:1:2",
      "2026-01-02",
      "3 ms",
    )
    const any = fc.oneof(
      fc.string(),
      fc.array(bits).map((list) => list.join("")),
      path,
      hash,
    )
    fc.assert(
      fc.property(any, (text) => {
        const once = normaliseError(text)
        expect(normaliseError(once)).toBe(once)
      }),
      { numRuns: RUNS * 10 },
    )
  })

  test("is the same with another path, line, hash, time and name", () => {
    const variables = fc.record({ path, line: whole, hash, duration, name, count: whole })
    const say = (v: { path: string; line: number; hash: string; duration: string; name: string; count: number }) =>
      `${v.path}:${v.line}:7 - error TS2339: Property '${v.name}' is not in ${v.hash} after ${v.duration} and ${v.count} tries`
    fc.assert(
      fc.property(variables, variables, (one, other) => {
        expect(normaliseError(say(one))).toBe(normaliseError(say(other)))
      }),
      { numRuns: RUNS },
    )
    expect(normaliseError("a0b1c2d/a.ts:1:7 - in a0b1c2d3")).toBe("<path> - in <id>")
    expect(normaliseError("src/a.ts(3,14): error TS2339: Property 'x' does not exist (12ms)")).toBe(
      "<path>: error TS2339: Property <text> does not exist (<time>)",
    )
  })

  test("differs if the error differs", () => {
    const different = [
      "error TS2339: Property 'x' does not exist on type 'Y'",
      "error TS2345: Argument of type 'x' is not assignable to parameter of type 'Y'",
      "Error: Cannot find module 'x'",
      "ENOENT: no such file or directory, open '/a/b'",
      "EACCES: permission denied, open '/a/b'",
      "AssertionError: expected 1 to be 2",
      "Request failed with status code 404",
      "Request failed with status code 500",
      "error[E0425]: cannot find value `x` in this scope",
      "error[E0433]: failed to resolve: use of undeclared crate `x`",
    ]
    expect(new Set(different.map(normaliseError)).size).toBe(different.length)
  })

  test("keeps apostrophes within words, and drops colours", () => {
    expect(normaliseError("can't open what isn't there")).toBe("can't open what isn't there")
    expect(normaliseError("\u001b[31mError\u001b[0m: gone")).toBe("Error: gone")
  })

  test("in an output, the line that names the error comes first, and counts are not errors", () => {
    const output = "Exit code 1\n FAIL  test/a.test.ts\n\n 1 failed\nTypeError: x is not a function\n Tests: 1 failed"
    expect(errorLines(output)).toEqual(["TypeError: x is not a function"])
  })

  test.each([
    ["[lint] ERROR task failed\na/b.go:9:1: func x is unused (unused)", "a/b.go:9:1: func x is unused (unused)"],
    ["FAIL example.com/a/b [build failed]\n./b.go:3:2: undefined: y", "./b.go:3:2: undefined: y"],
    ["warn: fatal: no origin\nb_test.go:12: expected 1, got 2", "b_test.go:12: expected 1, got 2"],
    ["npm ERR! code 1\nerror TS2304: Cannot find name 'y'.", "error TS2304: Cannot find name 'y'."],
    ["  at f (a.ts:1:2)\nRangeError: too deep", "RangeError: too deep"],
    ["--- FAIL: TestX (0.01s)", "--- FAIL: TestX (0.01s)"],
    ["hooks.go:15: 10:00 INFO failed=0 state unknown\n* unused: 1\n✗ no branch", "✗ no branch"],
    ["all is well\nbye", "bye"],
  ])("finds the most telling line of %j: %j", (output, expected) => {
    expect(errorLines(output)[0]).toBe(expected)
  })

  test("is more similar with the same names in it, and a part of it is similar", () => {
    const like = (a: string, b: string) => errorSimilarity(errorText(a), errorText(b))
    const zod = "Error: Cannot find module 'zod'"
    expect(like(zod, zod)).toBe(1)
    expect(like(zod, "Error: Cannot find module 'react'")).toBe(0.75)
    expect(like("find module", zod)).toBeGreaterThan(0.8)
    expect(like(zod, "TypeError: x is not a function")).toBe(0)
  })
})

describe("which errors are the same", () => {
  const like = (a: string, b: string) => errorSimilarity(errorText(a), errorText(b))

  test.each([
    "=== RUN   TestFailsOften",
    "--- FAIL: TestFailsOften (0.01s)",
    "--- PASS: TestFailsOften (0.01s)",
    "FAIL src/token.test.ts > a token > is invalid when old",
    "FAILED tests/test_token.py::test_expiry",
    "test token::is_invalid ... FAILED",
    "not ok 3 - is invalid when old",
    "ok example.com/failing 0.3s",
    "expected:",
    "expected: 3",
    "Error Trace: /home/dev/a_test.go:12",
    "panic({0x104830900?, 0x104cd3300?})",
    "at TokenError.check (src/token.ts:3:4)",
    "[lint] ERROR task failed",
  ])("%j names a test, a step or nothing: it is not compared", (line) => {
    expect(isInformative(line)).toBe(false)
  })

  test.each([
    "FAILED tests/test_token.py::test_expiry - AssertionError: 3 is not 4",
    "✗ Error: no such branch",
    "E       assert 3 == 4",
    "expected 200 to be 404, and it was so twice",
    "panic: index out of range",
    "a.go:3: expected: 3",
  ])("%j says what is wrong", (line) => {
    expect(isInformative(line)).toBe(true)
  })

  test("a line that only names a test finds no fix for the test's output", () => {
    const output = "Exit code 1\n--- FAIL: TestOld (0.01s)\nFAIL\n"
    const knowledge = knowing(output, "src/token.ts")
    expect(offered(knowledge, output)).toEqual([])
    const { solved } = findFixes(knowledge, { query: "--- FAIL: TestOld (0.02s)", inside: HERE })
    expect(solved).toEqual([])
    const other = knowing("TypeError: not the token that was expected", "src/token.ts")
    expect(offered(other, "Exit code 1\nexpected:\nactual:")).toEqual([])
  })

  test("if lines have a place, only those count, with assertions and exceptions next to them", () => {
    const output = [
      "Error: could not reach origin",
      "src/a.go:9:1: func x is unused (unused)",
      "fatal: not a git repository",
      "/usr/go/src/testing.go:1872 +0x190",
    ]
    expect(errorLines(output.join("\n"))).toEqual(["src/a.go:9:1: func x is unused (unused)"])
    const pytest = "    check failed here\nE       assert 3 == 4\ntests/test_a.py:7: AssertionError\nerror: one failed"
    expect(errorLines(pytest)).toEqual(["tests/test_a.py:7: AssertionError", "E assert 3 == 4"])
    const python = "a.py:3: DeprecationWarning: invalid escape\nValueError: no such day"
    expect(errorLines(python)).toContain("ValueError: no such day")
    expect(errorLines(`${output[3]}\npanic: no such day`)).toEqual(["panic: no such day"])
  })

  test.each([
    ["src/a.ts(3,14): error TS2339: Property 'x' does not exist", "TS2339"],
    ["src/a.ts:3:14 - error TS2339: Property 'x' does not exist", "TS2339"],
    ["Program.cs(3,4): error CS1002: ; expected [app.csproj]", "CS1002"],
    ["error[E0425]: cannot find value `x` in this scope", "E0425"],
    ["= note: `-D clippy::needless-return` implied by `-D warnings`", "clippy::needless-return"],
    ["#[warn(clippy::needless_return)] on by default", "clippy::needless-return"],
    ["a.py:1:8: F401 [*] `os` imported but unused", "F401"],
    ["a.py:1:1: E302 expected 2 blank lines, found 1", "E302"],
    ["a.py:3: error: Incompatible types in assignment [assignment]", "assignment"],
    ["a.py:3:0: C0114: Missing module docstring (missing-module-docstring)", "missing-module-docstring C0114"],
    ["[lint:go] cmd/a.go:9:2: error is not nil but it returns nil (nilerr)", "nilerr"],
    ["cmd/a.go:9:2: ifElseChain: rewrite if-else to switch (gocritic)", "gocritic ifElseChain"],
    ["cmd/a.go:9:2: SA1019: x is deprecated (staticcheck)", "staticcheck SA1019"],
    ["cmd/a.go:9:2: undefined: y (typecheck)", undefined],
    ["3:4 error Unexpected any @typescript-eslint/no-explicit-any", "@typescript-eslint/no-explicit-any"],
    ["3:4 error Parsing error: Unexpected token", undefined],
    ["src/a.ts:3:4 lint/style/useConst ━━━━━━━━", "lint/style/useConst"],
    ["a.rb:3:4: C: [Correctable] Style/StringLiterals: Prefer single quotes", "Style/StringLiterals"],
    ["a_test.go:9: wanted a token, got (nil)", undefined],
    ["Error: RFC3339 expected", undefined],
  ])("finds the error code in %j: %s", (line, code) => {
    expect(errorText(line).code).toBe(code)
  })

  test("the error code decides: with it, other words are the same error; without it, the same words are not", () => {
    const known = "cmd/a.go:9:2: string `x` has 3 occurrences, make it a constant (goconst)"
    expect(like("cmd/b.go:1:1: such constant `y` already exists (goconst)", known)).toBe(0.75)
    expect(like("cmd/a.go:70:1: such constant `y` already exists (goconst)", known)).toBe(1)
    expect(like("cmd/a.go:9:2: string `x` has 3 occurrences, make it a constant (revive)", known)).toBe(0)
    expect(like("cmd/a.go:9:2: string `x` has 3 occurrences, make it a constant", known)).toBeGreaterThan(0.8)
    const any = (file: string) => `${file}:3:4 - Unexpected any [@typescript-eslint/no-explicit-any]`
    expect(like(any("a.ts"), any("b.ts"))).toBe(0.75)
  })

  test("errors that cannot be similar are never similar", () => {
    const word = fc.constantFrom(
      "Cannot",
      "find",
      "'zod'",
      "a.go:3:1:",
      "(nilerr)",
      "TS2339:",
      "error",
      "clippy::no_x",
      "É",
    )
    const line = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => words.join(" "))
    fc.assert(
      fc.property(line, line, fc.double({ min: 0.3, max: 1, noNaN: true }), (asked, known, least) => {
        if (like(asked, known) >= least) expect(mayBeSimilar(errorText(asked), known, least)).toBe(true)
      }),
      { numRuns: RUNS * 10 },
    )
    expect(mayBeSimilar(errorText("Cannot find module"), "src/a.go:3:1: func x is unused", 0.6)).toBe(false)
  })

  test("a task's name before each line is not part of it; a level is", () => {
    const line = "cmd/a.go:9:2: func x is unused (unused)"
    expect(normaliseError(`[lint] [lint:go] ${line}`)).toBe(normaliseError(line))
    expect(errorLines(`[lint:go] ${line}`)).toEqual([line])
    expect(normaliseError("[ERROR] gone")).toBe("[ERROR] gone")
  })

  test("the end of a long line is kept, because it names the rule", () => {
    const line = `cmd/a.go:9:2: error is unwrapped: sig: func ${"a".repeat(2000)} (wrapcheck)`
    expect(errorText(line).code).toBe("wrapcheck")
    const [fix] = fixesIn(messagesOf(did(ran("make lint", line)), did(edited("cmd/a.go")), did(ran("make lint"))))
    const [kept] = toStoredFix(fix!, ["/home/dev"]).lines
    expect(kept!.length).toBe(300)
    expect(errorText(kept!).code).toBe("wrapcheck")
  })

  test("nothing is offered after a command that only reads or that no edit can fix", () => {
    const knowledge = knowing(E1, "src/token.ts")
    expect(offered(knowledge, E1)).toHaveLength(1)
    for (const command of ["ls missing", "git add a.ts", "git push", "cat a | grep b"])
      expect(offered(knowledge, E1, command)).toEqual([])
  })

  test("the lines of the edit nearest to the error are shown", () => {
    const change = (line: number, name: string) => [
      `@@ -${line},2 +${line},2 @@`,
      ` before ${name}`,
      ...[1, 2, 3].map((n) => `-old ${name} ${n}`),
      ...[1, 2, 3].map((n) => `+new ${name} ${n}`),
    ]
    const head = (path: string) => [`--- ${path}`, `+++ ${path}`]
    const edit = [
      ...head("src/other.ts"),
      ...change(80, "elsewhere"),
      ...head("src/token.ts"),
      ...change(10, "far"),
      ...change(80, "near"),
      ...change(95, "next"),
    ]
    const told = (error: string) =>
      offered(knowing(error, "src/token.ts", edit.join("\n")), error)[0]!.summary.split("\n")
    const near = [1, 2, 3].map((n) => `-old near ${n}`).concat([1, 2, 3].map((n) => `+new near ${n}`))
    expect(told("src/token.ts:82:3: func near is unused (unused)")).toEqual([...near, "-old next 1", "-old next 2"])
    expect(told(E1)[0]).toBe("-old elsewhere 1")
  })

  test("the change at the place of the error is stored first", () => {
    const hunk = (old_start: number, length: number) => ({
      path: "/home/dev/a.go",
      old_start,
      old_lines: length,
      new_start: old_start,
      new_lines: 0,
      lines: Array.from({ length }, (_, i) => `-line ${old_start + i}`),
    })
    const edits: FixEdit[] = [
      { path: "/home/dev/a.go", number: 2, added: 0, removed: 62, hunks: [hunk(1, 60), hunk(300, 2)] },
    ]
    const line = "a.go:301:2: func x is unused (unused)"
    const fix = { command: "make lint", error: line, normalised: "", lines: [line], failed_at: 1, edits }
    expect(toStoredFix(fix, ["/home/dev"]).edit.split("\n").slice(2, 5)).toEqual([
      "@@ -300,2 +300,0 @@",
      "-line 300",
      "-line 301",
    ])
  })

  test("only the stored lines of a long edit are formatted, and the rest is counted", () => {
    const changed = (path: string, lengths: number[]): FixEdit => ({
      ...{ path, number: 1, added: 1, removed: 0 },
      hunks: lengths.map((length) => ({
        ...{ path, old_start: 1, old_lines: 0, new_start: 1, new_lines: length },
        lines: Array.from({ length }, (_, i) => `+${length} ${i}`),
      })),
    })
    const fixed = (edits: FixEdit[]) =>
      toStoredFix({ command: "make", error: "x", normalised: "x", lines: ["x"], failed_at: 1, edits }, [])
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat(50), { maxLength: 4 }), { maxLength: 4 }), (files) => {
        const edits = files.map((lengths, i) => changed(`f${i}`, lengths))
        const whole = patchText(edits.flatMap(({ hunks }) => hunks)).split("\n")
        expect(fixed(edits)).toMatchObject({
          edit: whole.slice(0, 40).join("\n"),
          edit_lines_left_out: Math.max(0, whole.length - 40),
        })
      }),
    )
    const long = Array.from({ length: 100 }, (_, i) => changed(`f${i}`, [2_000]))
    expect(fixed(long).edit_lines_left_out).toBe(100 * 2_003 - 40)
  })
})

const HERE = "/home/dev/proj"

/** A project in which this was solved once. */
function knowing(output: string, path: string, edit = "-old\n+new") {
  const knowledge = openKnowledge(join(tempDir(), "knowledge.db"))
  const [fix] = fixesIn(messagesOf(did(ran("npm test", output)), did(edited(path)), did(ran("npm test"))))
  const conversation = { name: "a", ref: { source: "claude_code", id: "a" }, root: "a", kind: "person" } as const
  const id = knowledge.conversations.renewConversation({ ...conversation, project: HERE, started_at: 1, ended_at: 9 })
  knowledge.fixes.saveFixes(id, HERE, [{ ...toStoredFix(fix!, [HERE]), edit }])
  return knowledge
}

const offered = (knowledge: ReturnType<typeof knowing>, error: string, command = "npm test") =>
  findFix(
    { knowledge },
    { event: "failed_command", project: HERE, session: "now", command, error, at: 10 },
    NEW_SESSION,
  )

test("private fixes do not crowd out the others", () => {
  const knowledge = openKnowledge(join(tempDir(), "knowledge.db"))
  onTestFinished(() => void knowledge.close())
  const put = (project: string, error: string, i: number) => {
    const [fix] = fixesIn(messagesOf(did(ran("npm test", error)), did(edited("x.ts")), did(ran("npm test"))))
    const name = `${project}-${i}`
    const ref = { source: "claude_code", id: name } as const
    const id = knowledge.conversations.renewConversation({ name, ref, root: name, kind: "person", project })
    knowledge.fixes.saveFixes(id, project, [toStoredFix(fix!, [project])])
  }
  const error = "TypeError: quokka is not a function"
  for (let i = 0; i < 210; i++) put("/code/secret", error, i)
  put("/code/other", `${error} in a much longer sentence of words`, 0)
  const { solved } = findFixes(knowledge, { query: error, inside: HERE, except: ["/code/secret"] })
  expect(solved.map(({ project }) => project)).toEqual(["/code/other"])
})

describe("a similar command", () => {
  test.each([
    ["npm test", "npm test 2>&1", true],
    ["cd api && npm test", "npm test", true],
    ["cd api && npm test", "cd web && npm test", false],
    ["npx vitest run test/a.test.ts", "npx vitest run", true],
    ["npx vitest run", "npx vitest run test/a.test.ts", false],
    ["npx vitest run test/a.test.ts", "npx vitest run test/b.test.ts", false],
    ["npx tsc --noEmit", "npx tsc --noEmit -p tsconfig.json", false],
    ["npx tsc --noEmit", "npx tsc --noEmit --pretty", true],
    ["node a.js", "node b.js", false],
    ["python -c 'print(1)'", "python -c 'print(2)'", false],
    ["python - <<'EOF'\nprint(1)\nEOF", "python - <<'EOF'\nprint(2)\nEOF", false],
    ["git commit -m 'one thing'", "git commit -m 'another'", true],
    ["npm run build && npm test", "npm test", false],
    ["ls missing", "ls missing", false],
  ])("%j, later %j: %s", (failed, later, expected) => {
    expect(isSimilarCommand(failed, later)).toBe(expected)
  })
})

type Told = Pick<StoredMessage, "parts" | "effects"> & Partial<StoredMessage>

const messagesOf = (...told: Told[]): StoredMessage[] =>
  told.map((message, i) => ({
    number: i + 1,
    role: "assistant",
    at: i * 1000,
    abandoned: false,
    superseded: false,
    copied: false,
    ...message,
  }))
const did = (...effects: Effect[]): Told => ({ parts: [], effects })
const ran = (command: string, error?: string): Effect => ({
  type: "command",
  command,
  failed: error !== undefined,
  exit_status: error === undefined ? 0 : 1,
  ...(error !== undefined && { error }),
})
const edited = (path: string): Effect => ({ type: "file", path, action: "edited", added: 1, removed: 1 })
const E1 = "TypeError: x is not a function"
const E2 = "ReferenceError: y is not defined"
const brief = (told: Told[]) =>
  fixesIn(messagesOf(...told)).map(({ normalised, failed_at, fixed_at, edits }) => [
    normalised,
    failed_at,
    fixed_at,
    edits.map(({ path, number }) => `${path}#${number}`).join(" "),
  ])

describe("a conversation's fixes", () => {
  test("a command fails, a file is edited, the command passes", () => {
    expect(brief([did(ran("npm test", E1)), did(edited("a.ts")), did(ran("npm test"))])).toEqual([[E1, 1, 3, "a.ts#2"]])
  })

  test("a failure that disappeared without an edit is not a fix, even if edits come later", () => {
    expect(brief([did(ran("npm test", E1)), did(ran("npm test")), did(edited("a.ts")), did(ran("npm test"))])).toEqual(
      [],
    )
  })

  test("an edit after which the error is still there did not fix it", () => {
    const told = [
      did(ran("npm test", E1)),
      did(edited("a.ts")),
      did(ran("npm test", E1)),
      did(edited("b.ts")),
      did(ran("npm test")),
    ]
    expect(brief(told)).toEqual([[E1, 3, 5, "b.ts#4"]])
  })

  test("of two consecutive errors, each has the edits before the next run", () => {
    const told = [
      did(ran("npm test", E1)),
      did(edited("a.ts")),
      did(ran("npm test", E2)),
      did(edited("b.ts")),
      did(ran("npm test")),
    ]
    expect(brief(told)).toEqual([
      [E1, 1, 5, "a.ts#2"],
      [E2, 3, 5, "b.ts#4"],
    ])
  })

  test("in a chain, only the part that failed must pass later, if the output names it", () => {
    const chain = (output: string, later: string, command = "mise run fmt && mise run lint") =>
      brief([did(ran(command, `${E1}\n${output}`)), did(edited("a.ts")), did(ran(later))]).map(([, , fixed]) => fixed)
    expect(chain("[lint] ERROR task failed", "mise run lint")).toEqual([3])
    expect(chain("[lint:go] ERROR task failed", "mise run lint")).toEqual([3])
    expect(chain("[lint] ERROR task failed", "mise run fmt")).toEqual([undefined])
    expect(chain("something failed", "mise run lint")).toEqual([undefined])
    expect(chain("make: *** [Makefile:3: lint] Error 1", "make lint", "make fmt && make lint")).toEqual([3])
    expect(chain('error: script "lint" exited with code 1', "bun lint", "bun fmt && bun lint")).toEqual([3])
    const npm = ["npm error Lifecycle script `lint` failed", "npm run lint", "npm run fmt && npm run lint"] as const
    expect(chain(...npm)).toEqual([3])
  })

  test("errors in files that were not edited were not fixed by the edit", () => {
    const [here, there] = ["src/a.go:3:1: func x is unused (unused)", "src/b.go:4:1: missing return (typecheck)"]
    const linesOf = (...paths: string[]) =>
      fixesIn(
        messagesOf(did(ran("make lint", `${there}\n${here}`)), did(...paths.map(edited)), did(ran("make lint"))),
      )[0]
    expect(linesOf("/home/dev/src/a.go")).toMatchObject({ lines: [here], error: here })
    expect(linesOf("/home/dev/src/a.go", "/home/dev/src/b.go")!.lines).toEqual([there, here])
    expect(linesOf("/home/dev/go.mod")!.lines).toEqual([there, here])
  })

  test("without a run that passes, it is not solved", () => {
    expect(brief([did(ran("npm test", E1)), did(edited("a.ts"))])).toEqual([[E1, 1, undefined, "a.ts#2"]])
  })

  test("a test run in a pipe has an unknown outcome: it neither solves nor fails", () => {
    expect(brief([did(ran("npm test", E1)), did(edited("a.ts")), did(ran("npm test | tail -5"))])).toEqual([
      [E1, 1, undefined, "a.ts#2"],
    ])
    expect(brief([did(ran("npm test | grep foo", "nothing")), did(edited("a.ts")), did(ran("npm test"))])).toEqual([])
  })

  test("edits before the failure, and those in the same message as the failing run, are not the fix", () => {
    const told = [
      did(edited("before.ts")),
      did(ran("npm test", E1), edited("with.ts")),
      did(edited("a.ts")),
      did(ran("npm test")),
    ]
    expect(brief(told)).toEqual([[E1, 2, 4, "a.ts#3"]])
  })

  test("commands that run side by side are each matched with their own kind", () => {
    const told = [
      did(ran("npm test", E1), ran("npm run lint", E2)),
      did(edited("a.ts")),
      did(ran("npm run lint"), ran("npm test")),
    ]
    expect(brief(told)).toEqual([
      [E1, 1, 3, "a.ts#2"],
      [E2, 1, 3, "a.ts#2"],
    ])
    expect(brief([did(ran("npm test", E1)), did(edited("a.ts")), did(ran("npm run lint"))])).toEqual([
      [E1, 1, undefined, "a.ts#2"],
    ])
  })

  test("failures that no edit can fix, and commands that only read, are left out", () => {
    for (const error of ["(eval):cd:1: no such file or directory: web", "bash: npm: command not found"])
      expect(brief([did(ran("npm test", error)), did(edited("a.ts")), did(ran("npm test"))])).toEqual([])
    for (const command of ["git push", "ls missing", "gh pr create", "curl http://localhost"])
      expect(brief([did(ran(command, "fatal: no")), did(edited("a.ts")), did(ran(command))])).toEqual([])
    expect(
      brief([
        did(ran("git commit -m x", "nothing to commit, working tree clean")),
        did(edited("a.ts")),
        did(ran("git commit -m x")),
      ]),
    ).toEqual([])
  })

  test("copied, abandoned and superseded messages are ignored", () => {
    for (const flag of ["copied", "abandoned", "superseded"] as const)
      expect(brief([{ ...did(ran("npm test", E1)), [flag]: true }, did(edited("a.ts")), did(ran("npm test"))])).toEqual(
        [],
      )
  })

  test("a subagent's edits count at the call that started it, and files that the output names come first", () => {
    const call: Part = { type: "tool_call", text: "{}", origin: "agent", tool: "Task", call_id: "t1" }
    const messages = messagesOf(
      did(ran("npm test", "Error in b.ts: gone")),
      { parts: [call], effects: [] },
      did(edited("b.ts")),
      did(ran("npm test")),
    )
    const subagent = { id: "claude_code:s", call_id: "t1", messages: messagesOf(did(edited("a.ts"))) }
    const [fix] = fixesIn(messages, [subagent, { ...subagent, call_id: "other" }])
    expect(fix!.edits.map(({ path, number, subagent }) => [path, number, subagent])).toEqual([
      ["b.ts", 3, undefined],
      ["a.ts", 1, "claude_code:s"],
    ])
  })

  test("the edit's lines come from its result", () => {
    const hunk = { path: "a.ts", old_start: 1, old_lines: 1, new_start: 1, new_lines: 1, lines: ["-old", "+new"] }
    const result: Part = {
      type: "tool_result",
      text: "ok",
      origin: "local_tool",
      call_id: "e",
      is_error: false,
      hunks: [hunk],
    }
    const messages = messagesOf(
      did(ran("npm test", E1)),
      did({ ...edited("a.ts"), call_id: "e" } as Effect),
      { parts: [result], effects: [] },
      did(ran("npm test")),
    )
    expect(fixesIn(messages)[0]!.edits[0]!.hunks).toEqual([hunk])
  })

  test("if the result lacks them, they come from the call; if both do, there are none", () => {
    const hunksOf = (text: string) => {
      const part: Part = { type: "tool_call", text, origin: "agent", tool: "Edit", call_id: "e" }
      const mended = { parts: [part], effects: [{ ...edited("a.ts"), call_id: "e" } as Effect] }
      return fixesIn(messagesOf(did(ran("npm test", E1)), mended, did(ran("npm test"))))[0]!.edits[0]!.hunks
    }
    const [hunk] = hunksOf(JSON.stringify({ old_string: "a\nb", new_string: "c" }))
    expect(hunk).toMatchObject({ path: "a.ts", old_lines: 2, new_lines: 1, lines: ["-a", "-b", "+c"] })
    for (const text of ["", "{", '{"old_string":1}', '"old_string"', '{"old_string":"a"}'])
      expect(hunksOf(text)).toEqual([])
  })
})

const ASKED = "TypeError: Cannot read properties of undefined (reading 'expiry')"
const FAILED = `Exit code 1\nFAIL src/token.test.ts\n${ASKED}`

function bash(session: Writer, id: string, command: string, output: string, isError = false): void {
  session.answer(`m_${id}`, [call(id, "Bash", { command })])
  const told = isError ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
  session.result(id, output, { toolUseResult: told }, { is_error: isError })
}

function edit(session: Writer, id: string): void {
  const filePath = "/home/dev/proj/src/token.ts"
  session.answer(`m_${id}`, [
    call(id, "Edit", { file_path: filePath, old_string: "token.expiry", new_string: "token?.expiry" }),
  ])
  const lines = [
    " export function isOld(token) {",
    "-  return token.expiry < now()",
    "+  return token?.expiry < now()",
    " }",
  ]
  const structuredPatch = [{ oldStart: 3, oldLines: 3, newStart: 3, newLines: 3, lines }]
  session.result(id, "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
}

/** A failing test, the edit that fixes it, the test again; and a failure that is never fixed. */
function solvedSession(session: Writer): void {
  session.prompt("Make the tests pass")
  bash(session, "c1", "npm test", FAILED, true)
  edit(session, "e1")
  bash(session, "c2", "npm test", "12 passed")
  bash(session, "c3", "npm run lint", "Exit code 1\nsrc/token.ts:4:10 error: Unexpected constant condition", true)
  edit(session, "e2")
}

async function solvedHome(): Promise<string> {
  const home = tempDir()
  const session = writer()
  solvedSession(session)
  putSession(home, session.records)
  await syncHome(home)
  return home
}
const REF = `claude_code:${SESSION}`

describe("dex fix", () => {
  test("answers an error with the run that passed and the edit before it, as docs/fix.md shows", async () => {
    const home = await solvedHome()
    const told = JSON.parse((await dex(home, ["fix", ASKED, "--json"])).stdout)
    expect(told).toMatchObject({
      fixes: [
        {
          command: "npm test",
          error: ASKED,
          solved: true,
          ref: `${REF}#6`,
          failed_ref: `${REF}#2`,
          files: [{ path: "src/token.ts", added: 1, removed: 1 }],
          likeness: 1,
        },
      ],
      total: 1,
      unsolved: 0,
    })
    expect(told.fixes[0].edit).toContain("-  return token.expiry < now()\n+  return token?.expiry < now()")
    const page = readFileSync(new URL("../../docs/fix.md", import.meta.url), "utf8")
    expect((await dex(home, ["fix", ASKED])).stdout).toBe(/^```text\n([\s\S]*?)^```$/m.exec(page)?.[1])
  })

  test("finds the error with another name as less similar, and the command alone", async () => {
    const home = await solvedHome()
    const other = await dex(home, ["fix", "TypeError: Cannot read properties of undefined (reading 'name')", "--json"])
    expect(JSON.parse(other.stdout).fixes).toMatchObject([{ likeness: 0.75, solved: true }])
    const unheard = [..."abcdefghijklmnopqrstuvwxyz"].map((letter) => `${letter}qx${letter}`)
    const strange = ASKED.replace("expiry", unheard.join(" "))
    expect(JSON.parse((await dex(home, ["fix", strange, "--json"])).stdout).fixes).toMatchObject([{ solved: true }])
    const output = `$ npm test\n-- "running" --\n${FAILED}\n1 failed`
    expect(JSON.parse((await dex(home, ["fix", output, "--json"])).stdout).fixes).toMatchObject([{ likeness: 1 }])
    const byCommand = await dex(home, ["fix", "npm test", "--json"])
    expect(JSON.parse(byCommand.stdout).fixes).toMatchObject([{ command: "npm test", likeness: 1 }])
  })

  test("reports errors that were seen and not solved, and that nothing is known", async () => {
    const home = await solvedHome()
    const unsolved = await dex(home, ["fix", "error: Unexpected constant condition"])
    expect(unsolved.stdout).toContain("not known to be solved")
    expect(unsolved.stderr).toContain(
      "After 1 similar error, code was edited, but no run is known to have passed since then.",
    )
    const nothing = await dex(home, ["fix", "segmentation fault in libfoo"])
    expect(nothing).toMatchObject({ code: 1, stdout: "" })
    expect(nothing.stderr).toContain("No fix found.")
    expect(await dex(tempDir(), ["fix", "x"])).toMatchObject({ code: 2, stderr: expect.stringContaining("dex sync") })
  })

  test("a private project's fixes stay there, and the budget is respected", async () => {
    const home = await solvedHome()
    const small = JSON.parse((await dex(home, ["fix", ASKED, "--json", "--max-tokens", "150"])).stdout)
    expect(small.fixes).toEqual([])
    expect(small.notes.join()).toContain("1 more fix left out")
    expect(small.estimated_tokens).toBeLessThanOrEqual(150)
    expect((await dex(home, ["fix", ASKED, "--project", "elsewhere"])).code).toBe(1)
    expect(await dex(home, ["private", "/home/dev/proj"])).toMatchObject({ code: 0 })
    const hidden = await dex(home, ["fix", ASKED])
    expect(hidden).toMatchObject({ code: 1, stdout: "" })
    expect(hidden.stderr).toContain("Not shown: 1 similar error in private projects")
  })

  test("shows a subagent's edits in the conversation that started it", async () => {
    const home = tempDir()
    const session = writer()
    session.prompt("Make the tests pass")
    bash(session, "c1", "npm test", FAILED, true)
    session.answer("m_t1", [call("t1", "Task", { description: "Mend it", prompt: "Mend it" })])
    session.result("t1", "Done.")
    bash(session, "c2", "npm test", "12 passed")
    putSession(home, session.records)
    const agent = writer({ isSidechain: true, agentId: "a1" }, "s")
    agent.prompt("Mend it")
    edit(agent, "e1")
    const file = `.claude/projects/${PROJECT}/${SESSION}/subagents/agent-a1`
    put(home, `${file}.jsonl`, agent.records)
    put(home, `${file}.meta.json`, JSON.stringify({ agentType: "x", toolUseId: "t1" }))
    await syncHome(home)
    const { fixes } = JSON.parse((await dex(home, ["fix", ASKED, "--json"])).stdout)
    expect(fixes).toMatchObject([{ ref: `${REF}#6`, files: [{ path: "src/token.ts", added: 1, removed: 1 }] }])
  })

  test("of equally similar fixes, the one with fewer edits comes first", async () => {
    const home = tempDir()
    const [long, short] = ["22222222-2222-4333-8444-555555555555", SESSION]
    for (const [id, edits] of [
      [long, 5],
      [short, 1],
    ] as const) {
      const session = writer({ sessionId: id }, id.slice(0, 4))
      session.prompt("Make the tests pass")
      bash(session, `${id}c1`, "npm test", FAILED, true)
      for (let i = 0; i < edits; i++) edit(session, `${id}e${i}`)
      bash(session, `${id}c2`, "npm test", "12 passed")
      putSession(home, session.records, id)
    }
    await syncHome(home)
    const told = JSON.parse((await dex(home, ["fix", ASKED, "--json"])).stdout)
    expect(told.fixes.map(({ ref }: { ref: string }) => ref.split("#")[0])).toEqual([
      `claude_code:${short}`,
      `claude_code:${long}`,
    ])
  })
})
