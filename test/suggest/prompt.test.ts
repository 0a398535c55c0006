import fc from "fast-check"
import { expect, test } from "vitest"
import { pathsInPrompt } from "../../src/suggest/suggest.ts"

test("the files in a prompt are the same as one pattern over the complete text would find", () => {
  const whole = /[\w@.+-]*(?:\/[\w@.+-]+)+|[\w@+-]+(?:\.[\w+-]+)*\.[A-Za-z]\w{0,7}\b/g
  const word = fc.stringMatching(/^[a-zA-Z0-9_@.+-]{1,12}$/)
  const name = fc.array(word, { minLength: 1, maxLength: 2 }).map((parts) => parts.join("/"))
  const between = fc.constantFrom(", ", ".", "`", ":", "(", ")", "/", "./", "../", "@", "é", "://")
  const run = fc.array(fc.oneof(name, word, between), { maxLength: 8 }).map((parts) => parts.join(""))
  const text = fc.array(run, { maxLength: 12 }).map((runs) => runs.join(" "))
  fc.assert(
    fc.property(text, (prompt) => {
      expect(pathsInPrompt(prompt)).toEqual((prompt.match(whole) ?? []).slice(0, 20))
    }),
    { numRuns: 1_000 },
  )
  expect(pathsInPrompt("see .eslintrc.js, then src/a.ts:12 and v1.2.x")).toEqual(["eslintrc.js", "src/a.ts", "v1.2.x"])
})
