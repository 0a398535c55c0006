import type { Hunk } from "../../core/conversation.ts"
import { changedLines } from "../patch.ts"
import { visibleText } from "../visible.ts"
import { highlightLines, languageOfFile } from "./code-html.ts"
import { type Html, html, trustedHtml } from "./html.ts"

type Kind = "same" | "old" | "new"
type DiffLine = { kind: Kind; text: string; oldLine: string; newLine: string }
/** Consecutive lines that are all unchanged, or a change: the removed lines, then the added ones. */
type Run = { isChange: boolean; lines: DiffLine[] }

/** Colouring a change with more characters, such as a minified file, would take too long. */
const MAX_COLOURED_CHARS = 60_000

/**
 * A change to one file: the removed lines, then the added ones. The style sheet shows them side by side if there is room. Lines
 * after the first `maxLines` are only counted; `rest` is a link to all of them.
 */
export function diffHtml(hunks: readonly Hunk[], maxLines = Number.POSITIVE_INFINITY, rest?: Html): Html {
  const digits = String(
    Math.max(...hunks.map((hunk) => Math.max(hunk.old_start, hunk.new_start) + hunk.lines.length)),
  ).length
  let room = maxLines
  const shownHunks: Run[][] = []
  for (const hunk of hunks) {
    const lines = linesOf(hunk, digits)
    if (room > 0) shownHunks.push(runsOf(lines.slice(0, room)))
    room -= lines.length
  }
  const allRuns = shownHunks.flat()
  const colours = coloursOf(
    allRuns.flatMap(({ lines }) => lines),
    languageOfFile(hunks[0]?.path ?? ""),
  )
  const kinds = new Set(allRuns.flatMap(({ lines }) => lines.map(({ kind }) => kind)))
  const isTwoSided = kinds.has("old") && kinds.has("new")
  const hunkItems = shownHunks.map(
    (runs, i) =>
      html`${i > 0 && html`<div class="gap">⋯</div>`}${runs.map((run) => runHtml(run, colours, isTwoSided))}`,
  )
  const more = room < 0 && html`<div class="gap">${-room} more ${room === -1 ? "line" : "lines"}${rest}</div>`
  const hasPositions = hunks.some(({ old_start, new_start }) => old_start > 0 || new_start > 0)
  return html`<div class="diff${isTwoSided && " two"}${!hasPositions && " bare"}">${hunkItems}${more}</div>`
}

/** `+3 −1`, in the colours of added and removed lines. */
export function countsHtml(hunks: Hunk[]): Html {
  const { added, removed } = changedLines(hunks)
  return html`<span class="added">+${added}</span> <span class="removed">−${removed}</span>`
}

function linesOf({ lines, old_start, new_start }: Hunk, digits: number): DiffLine[] {
  let [oldLine, newLine] = [old_start, new_start]
  const blank = " ".repeat(digits)
  const padded = (line: number) => String(line).padStart(digits)
  return lines.flatMap((line): DiffLine[] => {
    // Exactly one line, so that the coloured lines can be matched to these.
    const text = visibleText(line.slice(1)).replace(/\n$/, "").replaceAll("\n", " ")
    if (line.startsWith("\\")) return []
    if (line.startsWith("-")) return [{ kind: "old", text, oldLine: padded(oldLine++), newLine: blank }]
    if (line.startsWith("+")) return [{ kind: "new", text, oldLine: blank, newLine: padded(newLine++) }]
    return [{ kind: "same", text, oldLine: padded(oldLine++), newLine: padded(newLine++) }]
  })
}

function runsOf(lines: readonly DiffLine[]): Run[] {
  const runs: Run[] = []
  for (const [i, line] of lines.entries()) {
    const isChange = line.kind !== "same"
    const isNext = runs.at(-1)?.isChange === isChange && !(line.kind === "old" && lines[i - 1]?.kind === "new")
    if (isNext) runs.at(-1)!.lines.push(line)
    else runs.push({ isChange, lines: [line] })
  }
  return runs
}

/** The lines as coloured HTML. The removed ones are coloured separately, because they are not a part of the new text. */
function coloursOf(lines: readonly DiffLine[], language: string): Map<DiffLine, Html> {
  const isLong = lines.reduce((sum, { text }) => sum + text.length, 0) > MAX_COLOURED_CHARS
  const sides = [lines.filter(({ kind }) => kind !== "old"), lines.filter(({ kind }) => kind === "old")]
  return new Map(
    sides.flatMap((side) => {
      const coloured = highlightLines(
        side.map(({ text }) => text),
        isLong ? "" : language,
      )
      return side.map((line, i) => [line, coloured[i]!] as const)
    }),
  )
}

function runHtml({ isChange, lines }: Run, colours: Map<DiffLine, Html>, isTwoSided: boolean): Html {
  const removed = lines.filter(({ kind }) => kind === "old")
  const added = lines.filter(({ kind }) => kind === "new")
  const marks = new Map<DiffLine, [start: number, end: number]>()
  for (const [i, old] of removed.entries()) {
    const fresh = added[i]
    const difference = fresh && differenceOf(old.text, fresh.text)
    if (!difference) continue
    marks.set(old, [difference.start, old.text.length - difference.end])
    marks.set(fresh, [difference.start, fresh.text.length - difference.end])
  }
  const lineItems = lines.map((line) => {
    const { kind, oldLine, newLine } = line
    const code = colours.get(line)!
    const [start, end] = marks.get(line) ?? [0, 0]
    const numbers = html` data-o="${oldLine}" data-n="${newLine}"`
    const text = html`<code>${end > start ? withMark(code, start, end) : code}</code>`
    if (kind === "old") return html`<del${numbers}>${text}</del>`
    if (kind === "new") return html`<ins${numbers}>${text}</ins>`
    // Side by side, an unchanged line is on both sides.
    return html`${isTwoSided && html`<div class="was"${numbers}>${text}</div>`}<div class="same"${numbers}>${text}</div>`
  })
  return html`<div class="run"${isChange && html` tabindex="-1" data-change`}>${lineItems}</div>`
}

/** The number of equal characters at the start and the end of two lines. Undefined if they share little. */
function differenceOf(old: string, fresh: string): { start: number; end: number } | undefined {
  const shorterLength = Math.min(old.length, fresh.length)
  let start = 0
  while (start < shorterLength && old[start] === fresh[start]) start++
  let end = 0
  while (end < shorterLength - start && old[old.length - 1 - end] === fresh[fresh.length - 1 - end]) end++
  return start + end < 0.4 * shorterLength ? undefined : { start, end }
}

/** Marks the characters from `start` to `end` of a coloured line, inside of each of its tags. */
function withMark(line: Html, start: number, end: number): Html {
  let position = 0
  const pieces = line.html.split(/(<[^>]*>)/).map((piece) => {
    if (piece.startsWith("<")) return piece
    const characters = piece.match(/&#?\w+;|[\s\S]/g) ?? []
    const [from, to] = [start - position, end - position].map((at) => Math.max(0, Math.min(characters.length, at)))
    position += characters.length
    if (from === to) return piece
    return `${characters.slice(0, from).join("")}<mark>${characters.slice(from, to).join("")}</mark>${characters.slice(to).join("")}`
  })
  return trustedHtml(pieces.join(""))
}
