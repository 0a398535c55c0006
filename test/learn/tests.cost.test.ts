import { expect, test } from "vitest"
import { parseTestCommand } from "../../src/learn/test-runs/commands.ts"
import { parseTestOutput } from "../../src/learn/test-runs/output.ts"
import { hostileTexts, processorMs } from "../support/hostile.ts"

test.each([
  ["vitest", " Test Files  1 failed\n", [" FAIL  a", " FAIL  a.ts [", " FAIL  |", " FAIL  a.ts > "]],
  ["jest", "Tests: 1 failed\nTest Suites: 1 failed\n", ["FAIL ", "FAIL a.ts (", "  ● "]],
  ["pytest", "1 failed in 1s\n", ["FAILED a", "FAILED a.py::", "FAILED a.py::x - ", "1 failed, "]],
  ["cargo", "test result: F. 1 passed; 1 failed;\n", ["test a", "test a ...", "\nfailures:\n    a"]],
  ["nextest", " Summary [ 1s] 1 tests run: 1 failed\n", ["FAIL [", " FAIL [1] ", " Summary ["]],
  ["rspec", "1 examples, 1 failures\n", ["rspec ", "rspec ./a", "rspec a["]],
  ["phpunit", "Tests: 1, Assertions: 1, Failures: 1\n", ["1) ", "1) A::b", "Tests: 1, Assertions: 1"]],
  ["dotnet", "Failed: 1, Passed: 1\n", ["X a(", "X a", "X a(b) [", "Failed:"]],
  ["maven", "Tests run: 1, Failures: 1, Errors: 0\n", ["[ERROR]   a", "[ERROR]   a.b:1 ", "[a] [ERROR] Tests run: "]],
  ["gradle", "1 tests completed, 1 failed\n", ["a > ", "a", "> Task :"]],
  ["node", "# fail 1\n✖ failing tests:\n", ["✖ a", "✖ a (", "not ok 1 - "]],
  ["bun", " 1 fail\n", ["(fail) ", "(fail) a [", "1"]],
  ["mocha", " 1 passing\n 1 failing\n", ["  1) a\n     ", "  1) ", " 1 passing ("]],
  ["playwright", "  1 failed\n", ["  1) a.ts:1:1 › x", "  1) [", "  1) [a] › ", "  1 passed ("]],
  ["unittest", "Ran 1 tests in 1\nFAILED (failures=1)\n", ["FAIL: a (", "FAIL: ", "FAILED ("]],
  ["go", "--- FAIL: T (0.1s)\nFAIL\n", ["--- FAIL: a", "--- FAIL: a (0.1s)\n    ", "FAIL\t", "ok "]],
])("output of %s is parsed quickly, whatever else it contains", (runner, head, beginnings) => {
  expect(parseTestOutput(head)?.runner).toBe(runner)
  for (const beginning of beginnings)
    for (const text of hostileTexts(100_000, beginning))
      expect(processorMs(() => parseTestOutput(head + text))).toBeLessThan(1_000)
})

test("an output that is made to be slow is parsed quickly", () => {
  for (const piece of [
    "FAIL ",
    "1) ",
    "  ● ",
    "1 failed, ",
    "not ok 1 - ",
    "     x\n",
    "--- FAIL: ",
    "=",
    " > ",
    "\n  1) a\n     b\n",
  ])
    expect(
      processorMs(() => parseTestOutput(`Tests  1 failed\nTest Files  1 failed\n${piece.repeat(100_000)}`)),
    ).toBeLessThan(1_000)
})

test("a command that is made to be slow is parsed quickly", () => {
  for (const text of hostileTexts(100_000))
    expect(processorMs(() => parseTestCommand(`npx vitest run ${text}`))).toBeLessThan(1_000)
})
