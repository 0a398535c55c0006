import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")
const CLOCKS =
  /performance\.now|hrtime|cpuUsage|memoryUsage|resourceUsage|processorMs|watchMemory|Date\.now\(\) - (?:start|asked|before)/

test("no test that shares the processors with others measures time or memory", () => {
  const files = globSync("test/**/*.test.ts", { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"))
  const shared = files.filter((file) => !/\.timing\.test\.ts$|^test\/torture\/|\/clocks\.test\.ts$/.test(file))
  expect(shared.length).toBeGreaterThan(100)
  const measuring = shared.flatMap((file) =>
    readFileSync(join(ROOT, file), "utf8")
      .split("\n")
      .filter((line) => CLOCKS.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  )
  expect(measuring).toEqual([])
})
