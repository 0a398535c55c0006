import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")
const CLOCKS =
  /performance\.now|hrtime|cpuUsage|memoryUsage|resourceUsage|processorMs|watchMemory|Date\.now\(\) - (?:start|asked|before)/
/** A time limit below 100 s. The limits in vitest.config.ts are for tests that hang, and a busy machine may need a minute. */
const SHORT_LIMIT = /\btimeout: \d{1,2}_000\b/

test("no test that shares the processors with others measures time or memory", () => {
  expect(linesWith(CLOCKS, "test/**/*.test.ts")).toEqual([])
})

test("no test that shares the processors with others gives up after less than 100 s", () => {
  expect(linesWith(SHORT_LIMIT, "{test,hub/test}/**/*.ts")).toEqual([])
})

/** The matching lines, with their files, of tests that share the processors with others. */
function linesWith(pattern: RegExp, glob: string): string[] {
  const files = globSync(glob, { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"))
  const shared = files.filter(
    (file) => !/\.(?:timing|cost)\.test\.ts$|^test\/(?:torture|windows)\/|\/clocks\.test\.ts$/.test(file),
  )
  expect(shared.length).toBeGreaterThan(100)
  return shared.flatMap((file) =>
    readFileSync(join(ROOT, file), "utf8")
      .split("\n")
      .filter((line) => pattern.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  )
}
