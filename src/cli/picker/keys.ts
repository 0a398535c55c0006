import { graphemesOf } from "../../render/terminal.ts"

/** A key by its name (`up`, `ctrl-a`, `alt-h`); or `text` with one typed character, or `paste` with the pasted text. */
export type Key = { name: string; text?: string }

/**
 * The keys that a terminal sent. An incomplete key at the end is returned as `rest`: put it before the next input, or, if none
 * comes, pass it to `lastKeys`.
 */
export function readKeys(input: string): { keys: Key[]; rest: string } {
  const keys: Key[] = []
  let rest = input
  while (rest !== "" && !isUnfinished(rest)) {
    const { key, length } = firstKey(rest)
    if (key) keys.push(key)
    rest = rest.slice(length)
  }
  return { keys, rest }
}

/**
 * The keys in a `rest` after which no more input came: a lone escape character is the Escape key. An unfinished paste stays in
 * `rest`.
 */
export function lastKeys(rest: string): { keys: Key[]; rest: string } {
  if (rest.startsWith(PASTE)) return { keys: [], rest }
  return { keys: rest === "\x1b" ? [{ name: "escape" }] : [], rest: "" }
}

const PASTE = "\x1b[200~"
const PASTE_END = "\x1b[201~"

function isUnfinished(input: string): boolean {
  if (input.startsWith(PASTE)) return !input.includes(PASTE_END)
  return /^\x1b(?:O|\[\[?[0-?]*[ -/]*)?$/.test(input)
}

function firstKey(input: string): { key?: Key; length: number } {
  if (input.startsWith(PASTE)) {
    const end = input.indexOf(PASTE_END)
    return { key: { name: "paste", text: input.slice(PASTE.length, end) }, length: end + PASTE_END.length }
  }
  if (input.startsWith("\x1b")) return escapedKey(input)
  const [text] = graphemesOf(/^[^\x00-\x1f\x7f]{0,32}/.exec(input)![0])
  if (text !== undefined) return { key: { name: "text", text }, length: text.length }
  return { key: { name: controlName(input.charCodeAt(0)) }, length: 1 }
}

function controlName(code: number): string {
  if (code === 13) return "enter"
  if (code === 9) return "tab"
  // The Backspace key sends one of these two codes, depending on the terminal.
  if (code === 8 || code === 127) return "backspace"
  return code === 0 ? "ctrl-space" : `ctrl-${String.fromCharCode(code + 64).toLowerCase()}`
}

const FINAL_LETTERS: Record<string, string> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  H: "home",
  F: "end",
  P: "f1",
  Z: "shift-tab",
}
const NUMBERED_KEYS: Record<string, string> = {
  "1": "home",
  "3": "delete",
  "4": "end",
  "5": "page-up",
  "6": "page-down",
  "7": "home",
  "8": "end",
  "11": "f1",
}
const MODIFIERS: Record<string, string> = { "3": "alt-", "5": "ctrl-" }

function escapedKey(input: string): { key?: Key; length: number } {
  const linuxKey = /^\x1b\[\[([A-E])/.exec(input)
  if (linuxKey) return { key: linuxKey[1] === "A" ? { name: "f1" } : undefined, length: linuxKey[0].length }
  const sequence = /^\x1b(?:\[([0-?]*)[ -/]*|O)([@-~])/.exec(input)
  if (sequence) {
    const [sequenceText, parameters = "", final = ""] = sequence
    const [first = "", modifier = ""] = parameters.split(";")
    const name = final === "~" ? NUMBERED_KEYS[first] : FINAL_LETTERS[final]
    return { key: name ? { name: `${MODIFIERS[modifier] ?? ""}${name}` } : undefined, length: sequenceText.length }
  }
  const [, character = ""] = /^\x1b(.)/su.exec(input) ?? []
  // The Escape key, followed by another key.
  if (character === "\x1b" || character === "") return { key: { name: "escape" }, length: 1 }
  const name = /[\x00-\x1f\x7f]/.test(character) ? controlName(character.charCodeAt(0)) : character.toLowerCase()
  return { key: { name: `alt-${name}` }, length: 1 + character.length }
}
