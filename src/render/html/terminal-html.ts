import { type Html, html } from "./html.ts"

const SEQUENCE = /\x1b\[([\d;:]*)m/g
/** A program that draws writes more of them than anybody reads. */
const MOST_SEQUENCES = 5_000

type Look = { color?: number | undefined; bold?: boolean; dim?: boolean; italic?: boolean; underlined?: boolean }

/** What a program printed: colours become classes, and every other sequence goes. */
export function terminalHtml(text: string): Html {
  if (!text.includes("\x1b[")) return html`${text}`
  const pieces: Html[] = []
  let look: Look = {}
  let from = 0
  for (const { 0: sequence, 1: codes = "", index } of text.matchAll(SEQUENCE)) {
    if (pieces.length >= MOST_SEQUENCES) break
    if (index > from) pieces.push(piece(text.slice(from, index), look))
    look = after(look, codes)
    from = index + sequence.length
  }
  if (from < text.length) pieces.push(piece(text.slice(from), look))
  return html`${pieces}`
}

function piece(text: string, look: Look): Html {
  const classes = [
    ...(look.color === undefined ? [] : [`ansi-${look.color}`]),
    ...(["bold", "dim", "italic", "underlined"] as const).filter((name) => look[name]),
  ]
  return classes.length === 0 ? html`${text}` : html`<span class="${classes.join(" ")}">${text}</span>`
}

function after(look: Look, codes: string): Look {
  let next = { ...look }
  const numbers = codes.split(/[;:]/).map(Number)
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i]!
    if (code === 0) next = {}
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 3) next.italic = true
    else if (code === 4) next.underlined = true
    else if (code === 22) Object.assign(next, { bold: false, dim: false })
    else if (code === 23) next.italic = false
    else if (code === 24) next.underlined = false
    else if (code >= 30 && code <= 37) next.color = code - 30
    else if (code >= 90 && code <= 97) next.color = code - 90 + 8
    else if (code === 39) next.color = undefined
    else if (code === 38 || code === 48) {
      // One of 256, of which the first sixteen have names, or any at all: three numbers.
      const isNamed = numbers[i + 1] === 5 && numbers[i + 2]! < 16
      if (code === 38) next.color = isNamed ? numbers[i + 2] : undefined
      i += numbers[i + 1] === 2 ? 4 : 2
    }
  }
  return next
}
