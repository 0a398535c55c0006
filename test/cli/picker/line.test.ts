import { expect, test } from "vitest"
import { readKeys } from "../../../src/cli/picker/keys.ts"
import { editLine, type TypedLine, typedLineOf } from "../../../src/cli/picker/state.ts"

/** The line after these keys, with a bar at the cursor. */
function after(text: string, keys: string): string {
  let line: TypedLine = typedLineOf(text)
  for (const key of readKeys(keys).keys) line = editLine(line, key) ?? line
  return `${line.text.slice(0, line.cursor)}|${line.text.slice(line.cursor)}`
}

test("moves and deletes as readline does", () => {
  expect(after("refresh token", "\x01x")).toBe("x|refresh token")
  expect(after("refresh token", "\x1b[D\x1b[Dx")).toBe("refresh tokx|en")
  expect(after("refresh token", "\x1bb\x15")).toBe("|token")
  expect(after("refresh the-token", "\x17")).toBe("refresh |")
  expect(after("refresh the-token", "\x1b\x7f")).toBe("refresh the-|")
  expect(after("refresh token  ", "\x17\x17")).toBe("|")
  expect(after("refresh token", "\x01\x1bf\x1bd")).toBe("refresh|")
  expect(after("refresh token", "\x01\x04\x1b[3~\x05\x7f\x08")).toBe("fresh tok|")
  expect(after("refresh token", "\x17\x01\x19 ")).toBe("token |refresh ")
})

test("the cursor moves over complete characters", () => {
  expect(after("a👩‍💻", "\x1b[D")).toBe("a|👩‍💻")
  expect(after("日本", "\x7f")).toBe("日|")
  expect(after("e\u0301x", "\x1b[D\x7f")).toBe("|x")
  expect(after("🇩🇪", "\x7f")).toBe("|")
})

test("typed and pasted text becomes one line without control characters", () => {
  expect(after("", "\x1b[200~two\nlines\x1b]0;title\x07 \x1b[201~")).toBe("two lines |")
  expect(after("a", " b")).toBe("a b|")
  expect(after("", "x\u202ey\u200b")).toBe("xy|")
  expect(after("", "\x1b[200~\n\x1b[201~")).toBe(" |")
})

test("keys that edit nothing return undefined", () => {
  for (const name of ["up", "enter", "ctrl-p", "ctrl-j", "ctrl-k", "escape", "alt-h"])
    expect(editLine(typedLineOf("x"), { name })).toBeUndefined()
})
