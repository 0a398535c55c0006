import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { parseTestCommand } from "../../src/learn/test-runs/commands.ts"
import { parseTestOutput } from "../../src/learn/test-runs/output.ts"
import { testRunsIn } from "../../src/learn/test-runs/runs.ts"
import { failingTests } from "../../src/learn/test-runs/status.ts"
import type { StoredMessage } from "../../src/store/history/store.ts"
import { type Knowledge, openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import type { TestRunWrite } from "../../src/store/knowledge/test-runs.ts"
import { claudeSession, type Turn } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const VITEST = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url))

/** Runs a real runner. Only its output matters, not its exit status. */
function printed(cwd: string, args: string[]): string {
  const env = { PATH: process.env.PATH, HOME: cwd, FORCE_COLOR: "1" }
  try {
    return execFileSync(process.execPath, args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    return `${stdout}\n${stderr}`
  }
}

const SUITE = `describe("auth", () => {
  test("refreshes", () => expect(1).toBe(2))
  test("logs in", () => {})
  test.skip("later", () => {})
})\n`

describe("a command that runs tests", () => {
  test.each([
    ["npm test", { runner: "script", kind: "npm test", targets: [] }],
    [
      "cd api && CI=1 npm run test:unit -- src/a.test.ts 2>&1 | tail -5",
      { kind: "npm run test:unit", folder: "api", targets: ["src/a.test.ts"], pipedTo: "tail -5" },
    ],
    [
      "npx vitest run test/a.test.ts -t 'logs in'",
      { runner: "vitest", targets: ["test/a.test.ts"], filter: ["logs in"] },
    ],
    ["node scripts/run.mjs vitest run test/x.test.ts", { runner: "vitest", targets: ["test/x.test.ts"] }],
    ["pnpm exec jest auth --coverage", { runner: "jest", targets: ["auth"] }],
    [
      "uv run pytest tests/test_a.py::TestX::test_y -x -q",
      { runner: "pytest", targets: ["tests/test_a.py"], filter: ["TestX test_y"], stops: true },
    ],
    ["python -m pytest -k 'refresh or login'", { runner: "pytest", targets: [], filter: ["refresh", "login"] }],
    ["python3 -m unittest discover", { runner: "unittest" }],
    ["go test ./... -count=1", { runner: "go", kind: "go test", targets: [""] }],
    [
      "go test -v -tags=integration -run 'TestA|TestB' ./cmd/cli/ -timeout 60s",
      { kind: "go test -tags=integration", targets: ["cmd/cli"], filter: ["TestA", "TestB"] },
    ],
    ["go test", { targets: ["."] }],
    ["cargo test refresh -- --nocapture", { runner: "cargo", targets: [], filter: ["refresh"] }],
    ["./gradlew :app:test --tests com.x.FooTest", { runner: "gradle", filter: ["com.x.FooTest"] }],
    ["mvn -q test", { runner: "maven" }],
    ["bundle exec rspec spec/a_spec.rb:12", { runner: "rspec", targets: ["spec/a_spec.rb"] }],
    ["dotnet test --filter Name=X", { runner: "dotnet", filter: ["Name=X"] }],
    ["vendor/bin/phpunit tests/FooTest.php", { runner: "phpunit", targets: ["tests/FooTest.php"] }],
    ["node --test 'test/**/*.test.mjs'", { runner: "node", targets: ["test"] }],
    ["mise run lint && mise run test:ci", { runner: "script", kind: "mise run test:ci", isOnlyCommand: false }],
  ])("%s", (command, expected) => {
    expect(parseTestCommand(command)).toMatchObject(expected)
  })

  test.each([
    "npm install vitest",
    "grep -rn vitest package.json",
    "git commit -m 'npm test passes'",
    "cat jest.config.js",
    "echo 'run npm test'",
    "go test -c ./e2e -o /dev/null",
    "npm run build",
    "pip install pytest",
    "cat <<EOF > x\nnpm test\nEOF",
    "ls test",
  ])("does not run tests: %s", (command) => {
    expect(parseTestCommand(command)).toBeUndefined()
  })
})

describe("parsing an output", () => {
  test("reads a real vitest run, in colour, with a file that cannot be loaded", () => {
    const dir = tempDir()
    writeFileSync(join(dir, "a.test.js"), SUITE)
    writeFileSync(join(dir, "b.test.js"), 'import "./gone.js"\n')
    const told = parseTestOutput(printed(dir, [VITEST, "run", "--root", ".", "--globals"]))
    expect(told).toMatchObject({ runner: "vitest", failed: 2, passed: 1, counted: true })
    expect(told!.failures).toEqual([
      { test: "b.test.js", file: "b.test.js", message: expect.stringContaining("Cannot find module './gone.js'") },
      {
        test: "a.test.js > auth > refreshes",
        file: "a.test.js",
        message: expect.stringContaining("expected 1 to be 2"),
      },
    ])
    writeFileSync(join(dir, "a.test.js"), SUITE.replace("toBe(2)", "toBe(1)"))
    rmSync(join(dir, "b.test.js"))
    expect(parseTestOutput(printed(dir, [VITEST, "run", "--root", ".", "--globals"]))).toMatchObject({
      failed: 0,
      failures: [],
    })
  })

  test("reads a real run of Node's own runner", () => {
    const dir = tempDir()
    writeFileSync(
      join(dir, "n.test.mjs"),
      `import { describe, test } from "node:test"\nimport assert from "node:assert"\ndescribe("auth", () => { test("refreshes", () => assert.equal(1, 2)); test("ok", () => {}) })\n`,
    )
    for (const reporter of ["spec", "tap"]) {
      const told = parseTestOutput(printed(dir, ["--test", `--test-reporter=${reporter}`, "n.test.mjs"]))
      expect(told, reporter).toMatchObject({ runner: "node", failed: expect.any(Number), passed: 1 })
      expect(
        told!.failures.map(({ test }) => test),
        reporter,
      ).toContain("refreshes")
    }
  })

  // Printed by these programs; the names are ours.
  test.each([
    [
      "jest",
      "FAIL src/a.test.js (5.1 s)\n  ● auth › refreshes\n\n    expect(received).toBe(expected)\n\n  ● auth › logs in\n\nPASS src/b.test.js\n\nTest Suites: 1 failed, 1 passed, 2 total\nTests:       2 failed, 5 passed, 7 total\n",
      { failed: 2, passed: 5 },
      ["src/a.test.js > auth › refreshes", "src/a.test.js > auth › logs in"],
    ],
    [
      "pytest",
      "FAILED tests/test_a.py::T::test_x - AssertionError: 1 != 2\nERROR tests/test_b.py\n========= 1 failed, 4 passed, 1 error in 0.12s =========\n",
      { failed: 2, passed: 4 },
      ["tests/test_a.py > T::test_x", "tests/test_b.py"],
    ],
    ["pytest", "....\n4 passed in 0.10s\n", { failed: 0, passed: 4 }, []],
    [
      "cargo",
      "test tests::good ... ok\ntest tests::bad ... FAILED\n\nfailures:\n\n---- tests::bad stdout ----\nboom\n\n\nfailures:\n    tests::bad\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n",
      { failed: 1, passed: 1 },
      ["tests::bad"],
    ],
    [
      "go",
      "--- FAIL: TestAuth (0.00s)\n    --- FAIL: TestAuth/refresh (0.00s)\n        auth_test.go:12: got 1, want 2\nFAIL\nFAIL\texample.com/m/auth\t0.004s\nok  \texample.com/m/web\t0.1s\nFAIL\n",
      { failed: 1 },
      ["TestAuth/refresh"],
    ],
    ["go", "ok  \texample.com/m/auth\t(cached)\n", { failed: 0 }, []],
    [
      "mocha",
      "  5 passing (10ms)\n  1 failing\n\n  1) auth\n       refreshes:\n\n      AssertionError: 1 == 2\n",
      { failed: 1, passed: 5 },
      ["auth > refreshes"],
    ],
    [
      "rspec",
      "3 examples, 1 failure\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:3 # Auth refreshes\n",
      { failed: 1, passed: 2 },
      ["spec/a_spec.rb > Auth refreshes"],
    ],
    [
      "phpunit",
      "1) Tests\\AuthTest::testRefresh\nFailed asserting\n\nTests: 3, Assertions: 5, Failures: 1.\n",
      { failed: 1 },
      ["Tests\\AuthTest::testRefresh"],
    ],
    ["phpunit", "OK (3 tests, 5 assertions)\n", { failed: 0, passed: 3 }, []],
    [
      "dotnet",
      "  Failed My.AuthTests.Refresh [12 ms]\nFailed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4\n",
      { failed: 1, passed: 3 },
      ["My.AuthTests.Refresh"],
    ],
    [
      "maven",
      "[ERROR] Failures: \n[ERROR]   AuthTest.refresh:12 expected: <1> but was: <2>\n[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0\n",
      { failed: 1, passed: 3 },
      ["AuthTest.refresh"],
    ],
    [
      "gradle",
      "AuthTest > refresh() FAILED\n    org.opentest4j.AssertionFailedError\n\n4 tests completed, 1 failed\n",
      { failed: 1, passed: 3 },
      ["AuthTest > refresh()"],
    ],
    [
      "playwright",
      "  1) [chromium] › tests/a.spec.ts:3:1 › auth › refreshes ─────\n\n  1 failed\n    [chromium] › tests/a.spec.ts\n  3 passed (2.1s)\n",
      { failed: 1, passed: 3 },
      ["tests/a.spec.ts > auth › refreshes"],
    ],
    [
      "unittest",
      "FAIL: test_x (test_a.T.test_x)\n----\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n",
      { failed: 1, passed: 1 },
      ["test_a.T.test_x"],
    ],
  ])("reads the counts and failures of %s", (runner, output, counts, names) => {
    const told = parseTestOutput(output)
    expect(told).toMatchObject({ runner, ...counts })
    expect(told!.failures.map(({ test }) => test)).toEqual(names)
  })

  test("finds nothing if it is not a test run", () => {
    const nowhere = "stat /x: directory not found\nFAIL\t./x [setup failed]\nFAIL\n"
    for (const text of ["", "hello", "3 files changed", "error: something failed", nowhere])
      expect(parseTestOutput(text)).toBeUndefined()
  })

  test("reads a name before a drawn rule, and one with brackets and parentheses", () => {
    const drawn = `  1) [chromium] › a.spec.ts:3:1 › login › asks ${"─".repeat(40)}\n  1) a.spec.ts:3:1 › login › asks\n  1 failed\n`
    expect(parseTestOutput(drawn)?.failures).toEqual([{ test: "a.spec.ts > login › asks", file: "a.spec.ts" }])
    const theory = 'Failed A.B(x: ") [1 ms]", y: [1]) [< 1 ms]\nFailed:     1, Passed:     2\n'
    expect(parseTestOutput(theory)?.failures.map(({ test }) => test)).toEqual(['A.B(x: ") [1 ms]", y: [1])'])
    expect(parseTestOutput("rspec ./a_spec.rb[1:2:1] # A b\n2 examples, 1 failure\n")?.failures).toEqual([
      { test: "a_spec.rb > A b", file: "a_spec.rb" },
    ])
    const go = "--- FAIL: A (0s)\n    --- FAIL: A/b (0s)\n        --- FAIL: A/b/c (0s)\n--- FAIL: Ab (0s)\nFAIL\n"
    expect(parseTestOutput(go)?.failures.map(({ test }) => test)).toEqual(["A/b/c", "Ab"])
    const long = `FAIL a.test.ts > ${"x".repeat(5_000)}\n Test Files  1 failed\n`
    expect(parseTestOutput(long)?.failures[0]?.test).toHaveLength(300)
  })
})

describe("a run in a conversation", () => {
  const OK = "ok  \texample.com/m/auth\t0.1s\n"
  const FAIL = "--- FAIL: TestAuth (0.00s)\nFAIL\nFAIL\texample.com/m/auth\t0.1s\n"
  const SUMMARY = " Test Files  1 passed (1)\n      Tests  3 passed (3)\n"
  const run = (command: string, output: string, failed?: boolean) => {
    const message: StoredMessage = {
      number: 1,
      role: "assistant",
      parts: [{ type: "tool_result", text: output, origin: "local_tool", call_id: "c", is_error: false }],
      effects: [{ type: "command", command, call_id: "c", ...(failed !== undefined && { failed }) }],
      ...{ abandoned: false, superseded: false, copied: false },
    }
    return testRunsIn([message], ["/p"]).map(({ outcome, complete }) => `${outcome}${complete ? "" : ", in part"}`)[0]
  }

  test.each<[string, string, boolean | undefined, string | undefined]>([
    ["go test ./...", OK, false, "passed"],
    ["go test ./... | tail -5", OK, false, "passed"],
    ["go test ./... | head -1", OK, false, undefined],
    ["go test ./... | head -50", OK, false, "passed"],
    ["go test ./... | grep ok", OK, false, undefined],
    ["npx vitest run | grep -v x", SUMMARY, false, "passed"],
    ["go test ./...", FAIL, true, "failed"],
    ["go test ./... | tail -5", FAIL, false, "failed, in part"],
    ["npm test", "", false, "passed"],
    ["npm test", "Exit code 1", true, "failed, in part"],
    ["npm test", "running in background", undefined, undefined],
    ["npm run lint && npm test", "1 problem", true, undefined],
    ["npm test | tail", "", false, undefined],
    ["vitest run --changed", SUMMARY, false, "passed, in part"],
    ["vitest run --bail=1", SUMMARY, false, "passed"],
    ["go test ./... -failfast", FAIL, true, "failed, in part"],
  ])("%s", (command, output, failed, expected) => {
    expect(run(command, output, failed)).toBe(expected)
  })
})

describe("the failing tests as last known", () => {
  const PROJECT = "/code/api"
  const base = { kind: "npm test", script: true, runner: "vitest", folder: "", targets: [], filter: [] }
  const passed = (more: Partial<TestRunWrite> = {}): Partial<TestRunWrite> => {
    return { ...base, outcome: "passed", failed: 0, failures: [], complete: true, ...more }
  }
  const failed = (names: string[], more: Partial<TestRunWrite> = {}): Partial<TestRunWrite> => {
    const failures = names.map((test) => ({ test, ...(test.includes(" > ") && { file: test.split(" > ")[0]! }) }))
    return { ...base, outcome: "failed", failed: names.length || 1, failures, complete: names.length > 0, ...more }
  }
  const direct = { kind: "vitest", script: false }

  function leftAfter(runs: Partial<TestRunWrite>[], file?: string): string[] {
    const db: Knowledge = openKnowledge(join(tempDir(), KNOWLEDGE_FILE))
    const id = db.conversations.renewConversation({
      name: "1",
      ref: { source: "claude_code", id: "c" },
      root: "c",
      project: PROJECT,
      kind: "person",
    })
    db.tests.saveTestRuns(
      id,
      PROJECT,
      runs.map((run, i) => ({ number: i + 1, at: i * 1000, command: "x", ...run }) as TestRunWrite),
      undefined,
    )
    const status = failingTests(db, PROJECT, file)
    db.close()
    return [...status.tests.map(({ test }) => test), ...status.runs.map(({ ref }) => ref)]
  }

  const A = "a.test.ts > one"
  const B = "src/b.test.ts > two"
  test.each<[string, Partial<TestRunWrite>[], string[]]>([
    ["a failure stands until it is seen to pass", [failed([A])], [A]],
    ["a whole run that passes clears all", [failed([A, B]), passed()], []],
    ["and what fails after it counts", [passed(), failed([A])], [A]],
    ["a whole run that names all its failures clears the others", [failed([A, B]), failed([B])], [B]],
    ["one that stopped early does not", [failed([A, B]), failed([B], { complete: false })], [B, A]],
    ["a run of one file clears that file", [failed([A, B]), passed({ ...direct, targets: ["src/b.test.ts"] })], [A]],
    ["a run of one folder clears what is below", [failed([A, B]), passed({ ...direct, targets: ["src"] })], [A]],
    ["a run of one name clears that name", [failed([A, B]), passed({ ...direct, filter: ["two"] })], [A]],
    ["a run in a package clears that package", [failed([A, B]), passed({ folder: "src" })], [A]],
    ["another script runs other tests", [failed([A]), passed({ kind: "npm run test:e2e" })], [A]],
    ["another runner too", [failed([A]), passed({ kind: "pytest", runner: "pytest", script: false })], [A]],
    ["a runner started by hand runs what its script does", [failed([A]), passed(direct)], []],
    ["but not those that are kept apart", [failed([A], { kind: "npm run test:integration" }), passed(direct)], [A]],
    ["a run without names counts as one", [failed([])], ["claude_code:c#1"]],
    ["until one like it passes", [failed([]), passed()], []],
    ["a run of a name does not make a whole one good", [failed([]), passed({ filter: ["two"] })], ["claude_code:c#1"]],
  ])("%s", (_, runs, expected) => {
    expect(leftAfter(runs)).toEqual(expected)
  })

  test("include go's packages, whose tests name no file", () => {
    const go = { runner: "go", kind: "go test", script: false }
    const run = failed(["TestA/sub"], { ...go, targets: ["cmd/cli/strategy"] })
    expect(leftAfter([run, passed({ ...go, targets: ["cmd/cli"] })])).toEqual([])
    expect(leftAfter([run, passed({ ...go, targets: ["cmd/web"] })])).toEqual(["TestA/sub"])
    expect(leftAfter([run, passed({ ...go, targets: ["cmd/cli/strategy"], filter: ["TestA"] })])).toEqual([])
    expect(leftAfter([run, passed({ ...go, targets: ["cmd/cli/strategy"], filter: ["TestB"] })])).toEqual(["TestA/sub"])
    expect(leftAfter([run], "cmd/cli/strategy/hooks.go")).toEqual(["TestA/sub"])
    expect(leftAfter([run], "cmd/web/hooks.go")).toEqual([])
  })

  test("of one file are the tests in it, and those about it", () => {
    const runs = [failed(["src/auth.test.ts > one", "src/web.test.ts > two", "tests/test_auth.py > three"])]
    expect(leftAfter(runs, "src/auth.test.ts").sort()).toEqual(["src/auth.test.ts > one", "tests/test_auth.py > three"])
    expect(leftAfter(runs, "src/auth.ts").sort()).toEqual(["src/auth.test.ts > one", "tests/test_auth.py > three"])
    expect(leftAfter(runs, "src/other.ts")).toEqual([])
  })
})

describe("dex fix --tests", () => {
  const ID = "11111111-1111-4111-8111-111111111111"
  const bash = (command: string, output: string, error = false): Turn => ({
    tool: { name: "Bash", input: { command }, output, error },
  })
  const FAILED =
    " FAIL  src/a.test.ts > auth > \u001b]0;evil\u0007refreshes\nAssertionError: quokkaword\n\n Test Files  1 failed (1)\n      Tests  1 failed | 3 passed (4)\n"

  async function homeWith(turns: Turn[]): Promise<{ home: string; project: string }> {
    const home = tempDir()
    const project = join(home, "code")
    mkdirSync(join(project, ".git"), { recursive: true })
    mkdirSync(join(project, "src"))
    claudeSession(home, { id: ID, cwd: project, start: "2026-11-03T10:00:00Z", turns })
    await syncHome(home)
    return { home, project }
  }

  test("says what fails, since when and from where, whatever a file in the project says; forgetting removes it", async () => {
    const { home, project } = await homeWith([{ user: "run them" }, bash("npx vitest run", FAILED, true)])
    const run = (...args: string[]) => dex(home, ["tests", ...args], {}, project)
    const found = await run("--json")
    expect(found.code).toBe(0)
    expect(JSON.parse(found.stdout)).toMatchObject({
      project,
      failing: [
        {
          file: "src/a.test.ts",
          message: "AssertionError: quokkaword",
          date: "2026-11-03T10:01:00.000Z",
          ref: `claude_code:${ID}#2`,
          command: "npx vitest run",
        },
      ],
      unnamed: [],
      total: 1,
      runs_known: 1,
    })
    const shown = await run("--file", "src/a.ts")
    expect(shown).toMatchObject({ code: 0 })
    expect(shown.stdout).toMatch(
      / 1 {2}src\/a\.test\.ts > auth > refreshes\n {4}AssertionError: quokkaword\n {4}failed 2026-11-03 10:01 {2}\$ npx vitest run/,
    )
    expect(shown.stdout).not.toContain("\u001b")
    expect(shown.stderr).toMatch(
      /1 failing test\. dex knows 1 test run from conversations, the last one 2026-11-03 10:01\. dex ran no test itself/,
    )
    expect(await run("--file", "src/other.ts")).toMatchObject({ code: 1, stdout: "" })
    expect(await run("-f", "/etc/passwd")).toMatchObject({ code: 2 })

    writeFileSync(
      join(project, "junit.xml"),
      '<testsuite name="src/a.test.ts"><testcase name="auth &gt; refreshes"/></testsuite>',
    )
    expect((await run()).stdout).toContain("auth > refreshes")

    expect(await dex(home, ["forget", `claude_code:${ID}`, "--yes"])).toMatchObject({ code: 0 })
    const dir = join(home, ".dex")
    const bytes = Buffer.concat(
      readdirSync(dir)
        .filter((name) => name.startsWith(KNOWLEDGE_FILE))
        .map((name) => readFileSync(join(dir, name))),
    ).toString("latin1")
    expect(bytes).not.toContain("quokkaword")
  })

  test("reports a run that named no tests, respects its budget, and says what is left out", async () => {
    const names = Array.from({ length: 30 }, (_, i) => ` FAIL  src/a.test.ts > number ${i}\n`).join("")
    const { home, project } = await homeWith([
      { user: "run them" },
      bash("make test", "make: *** [test] Error 2", true),
      bash("npx vitest run", `${names} Test Files  1 failed (1)\n      Tests  30 failed (30)\n`, true),
    ])
    const run = (...args: string[]) => dex(home, ["tests", ...args], {}, project)
    const all = await run("--limit", "40")
    expect(all.stdout).toMatch(
      /31 {2}\$ make test\n {4}failed 2026-11-03 10:01, at least 1 test; the output does not name them/,
    )
    const few = JSON.parse((await run("--json")).stdout)
    expect(few).toMatchObject({ failing: { length: 20 }, unnamed: [{ command: "make test" }], total: 30 })
    expect(few.notes).toEqual(["10 more results left out. Use a higher limit or max_tokens to see all."])
    const small = JSON.parse((await run("--json", "--max-tokens", "300")).stdout)
    expect(small.estimated_tokens).toBeLessThanOrEqual(300)
    expect(small.failing.length).toBeGreaterThan(0)
    expect(small.notes[0]).toMatch(/^\d\d more results left out/)
  })

  test("reports nothing for a project without runs, and says where it looked", async () => {
    const home = tempDir()
    const found = await dex(home, ["tests"])
    expect(found).toMatchObject({ code: 1, stdout: "" })
    expect(found.stderr).toMatch(/No test runs of this project are known/)
  })
})
