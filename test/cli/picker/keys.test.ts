import { expect, test } from "vitest"
import { lastKeys, readKeys } from "../../../src/cli/picker/keys.ts"

const names = (input: string) => readKeys(input).keys.map(({ name, text }) => text ?? name)

test("keys are read as terminals send them", () => {
  expect(names("a\x01\x05\x0b\x0a\r\t\x7f\x08\x1a")).toEqual([
    "a",
    ...["ctrl-a", "ctrl-e", "ctrl-k", "ctrl-j", "enter", "tab", "backspace", "backspace", "ctrl-z"],
  ])
  expect(names("\x1b[A\x1bOB\x1b[1~\x1b[4~\x1b[H\x1bOF\x1b[5~\x1b[6~\x1b[3~\x1b[Z")).toEqual([
    ...["up", "down", "home", "end", "home", "end", "page-up", "page-down", "delete", "shift-tab"],
  ])
  expect(names("\x1bOP\x1b[11~\x1b[[A\x1b[1;5C\x1b[1;3D\x1bh\x1bH\x1b\x7f")).toEqual([
    ...["f1", "f1", "f1", "ctrl-right", "alt-left", "alt-h", "alt-h", "alt-backspace"],
  ])
  expect(names("日本👩‍💻é")).toEqual(["日", "本", "👩‍💻", "é"])
})

test("unknown keys are ignored, and leave no letters behind", () => {
  expect(names("\x1b[15~\x1b[1;2R\x1b[?62;c\x1b[<0;3;4M\x1b[[Bx\x1b[I\x1b[O")).toEqual(["x"])
})

test("a key that arrives in pieces is one key", () => {
  const whole = "é\x1b[1;5Cx\x1bOA\x1b[200~a\nb\x1b[201~y"
  const all = names(whole)
  expect(all).toEqual(["é", "ctrl-right", "x", "up", "a\nb", "y"])
  for (let cut = 1; cut < whole.length; cut++) {
    const first = readKeys(whole.slice(0, cut))
    const second = readKeys(first.rest + whole.slice(cut))
    expect([...first.keys, ...second.keys].map(({ name, text }) => text ?? name)).toEqual(all)
    expect(second.rest).toBe("")
  }
})

test("Escape is recognised when no more input follows", () => {
  expect(readKeys("\x1b")).toEqual({ keys: [], rest: "\x1b" })
  expect(lastKeys("\x1b")).toEqual({ keys: [{ name: "escape" }], rest: "" })
  expect(names("\x1b\x1b[A")).toEqual(["escape", "up"])
  expect(lastKeys("\x1b[")).toEqual({ keys: [], rest: "" })
})

test("a paste is read to its end, however long that takes, and its keys are text", () => {
  const begun = readKeys("\x1b[200~rm -rf\r\x1b[A")
  expect(begun.keys).toEqual([])
  expect(lastKeys(begun.rest)).toEqual({ keys: [], rest: begun.rest })
  expect(readKeys(`${begun.rest}\x03\x1b[201~`).keys).toEqual([{ name: "paste", text: "rm -rf\r\x1b[A\x03" }])
})
