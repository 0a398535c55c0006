import { expect, test } from "vitest"
import { codeOf, DexError } from "../../src/core/error.ts"

test("reads the code of an error, whatever was thrown", () => {
  expect(codeOf(Object.assign(new Error("no"), { code: "ENOENT" }))).toBe("ENOENT")
  expect(codeOf(new DexError("corrupt", "It is damaged."))).toBe("corrupt")
  for (const thrown of [new Error("no"), { code: 3 }, "ENOENT", null, undefined]) expect(codeOf(thrown)).toBe("")
})
