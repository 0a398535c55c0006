import { expect, test } from "vitest"
import { pathsInPrompt } from "../../src/suggest/suggest.ts"
import { hostileTexts, processorMs } from "../support/hostile.ts"

test("a prompt with a key or a blob in it is parsed quickly", () => {
  for (const text of ["a1".repeat(10_000), "a.1".repeat(6_666), ...hostileTexts(20_000)])
    expect(processorMs(() => pathsInPrompt(text))).toBeLessThan(200)
  expect(pathsInPrompt(`${"a1".repeat(10_000)} in src/a.ts`)).toEqual(["src/a.ts"])
})
