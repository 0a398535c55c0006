import { safeLine, signsOf } from "../../render/terminal.ts"
import type { Key } from "./keys.ts"

/** A line that is being typed: its text, where the cursor stands in it, and what was cut from it last. */
export type TypedLine = { text: string; at: number; cut: string }

export function lineOf(text: string): TypedLine {
  return { text, at: text.length, cut: "" }
}

/** The line after a key, by the keys of readline. Undefined where the key edits nothing. */
export function editLine(line: TypedLine, { name, text = "" }: Key): TypedLine | undefined {
  if (name === "text" || name === "paste") return inserted(line, typed(text))
  const { at, text: whole } = line
  switch (name) {
    case "left":
    case "ctrl-b":
      return { ...line, at: at - lengthBefore(line) }
    case "right":
    case "ctrl-f":
      return { ...line, at: at + lengthAfter(line) }
    case "ctrl-a":
      return { ...line, at: 0 }
    case "ctrl-e":
      return { ...line, at: whole.length }
    case "alt-b":
    case "ctrl-left":
    case "alt-left":
      return { ...line, at: wordStart(line) }
    case "alt-f":
    case "ctrl-right":
    case "alt-right":
      return { ...line, at: wordEnd(line) }
    case "backspace":
      return without(line, at - lengthBefore(line), at)
    case "delete":
    case "ctrl-d":
      return without(line, at, at + lengthAfter(line))
    case "ctrl-u":
      return kill(line, 0, at)
    case "ctrl-w":
      return kill(line, /\S*\s*$/.exec(whole.slice(0, at))!.index, at)
    case "alt-backspace":
      return kill(line, wordStart(line), at)
    case "alt-d":
      return kill(line, at, wordEnd(line))
    case "ctrl-y":
      return inserted(line, line.cut)
    default:
      return undefined
  }
}

function inserted(line: TypedLine, text: string): TypedLine {
  const { at, text: whole } = line
  return { ...line, text: whole.slice(0, at) + text + whole.slice(at), at: at + text.length }
}

/** What is typed or pasted may hold anything; spaces at its ends are meant. */
function typed(text: string): string {
  const [, before = "", after = ""] = /^(\s*).*?(\s*)$/s.exec(text)!
  const clean = safeLine(text)
  return clean === "" ? (before === "" ? "" : " ") : `${before && " "}${clean}${after && " "}`
}

function without(line: TypedLine, from: number, to: number): TypedLine {
  return { ...line, text: line.text.slice(0, from) + line.text.slice(to), at: from }
}

function kill(line: TypedLine, from: number, to: number): TypedLine {
  const cut = line.text.slice(from, to)
  return { ...without(line, from, to), cut: cut === "" ? line.cut : cut }
}

function lengthBefore({ text, at }: TypedLine): number {
  return signsOf(text.slice(0, at)).at(-1)?.length ?? 0
}

function lengthAfter({ text, at }: TypedLine): number {
  return signsOf(text.slice(at))[0]?.length ?? 0
}

function wordStart({ text, at }: TypedLine): number {
  return /[\p{L}\p{N}_]*[^\p{L}\p{N}_]*$/u.exec(text.slice(0, at))!.index
}

function wordEnd({ text, at }: TypedLine): number {
  return at + /^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u.exec(text.slice(at))![0].length
}
