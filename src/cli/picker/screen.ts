import { agentOf, agents } from "../../agents/registry.ts"
import { DAY_MS, localDay } from "../../core/dates.ts"
import {
  clip,
  cutToColumns,
  graphemesOf,
  padEnd,
  paint,
  type Style,
  safeLine,
  widthOf,
  wrap,
} from "../../render/terminal.ts"
import { projectName } from "../../render/words.ts"
import { asTyped } from "../print/words.ts"
import { type Preview, previewLines } from "./preview-lines.ts"
import type { PickerRow, PickerState } from "./state.ts"
import { ACTIONS, OTHER_KEYS } from "./state.ts"

export type PickerLook = {
  columns: number
  rows: number
  color: boolean
  /** The command that starts dex, if it is not `dex`. */
  program?: string
  unicode: boolean
  now: number
  /** The footer's name for the action of the Enter key. */
  enter: string
}

export type Frame = { lines: string[]; cursor: { row: number; column: number } }

const MIN_COLUMNS_FOR_PREVIEW = 90
const MIN_LIST_COLUMNS = 44
/** The number of lines around the list: above it the words and a rule, below it a rule and the keys. */
const LINES_AROUND = 4

/** Draws the complete screen, as one string per row. */
export function drawScreen(state: PickerState, preview: Preview | undefined, look: PickerLook): Frame {
  const { bodyRows } = layoutOf(look)
  const { line, column } = wordsLine(state, look)
  const body = bodyLines(state, preview, look)
  const isSplit = hasPreview(look) && !state.menu
  const lines = [
    line,
    ruleLine(state.note, isSplit ? "┬" : "─", look),
    ...body.slice(0, bodyRows),
    ...Array<string>(Math.max(0, bodyRows - body.length)).fill(""),
    ruleLine("", isSplit ? "┴" : "─", look),
    footLine(state, look),
  ]
  const visibleLines = look.rows >= LINES_AROUND + 1 ? lines : [lines[0]!, ...body]
  return {
    lines: visibleLines.slice(0, look.rows).map((line) => (look.unicode ? line : toAscii(line))),
    cursor: { row: 0, column },
  }
}

/** How many rows fit on the screen. */
export function rowsPerPage(state: PickerState, look: PickerLook): number {
  return Math.max(1, Math.floor(layoutOf(look).bodyRows / linesPerRow(state)))
}

/** True if there is room for a preview next to the list. */
export function hasPreview(look: PickerLook): boolean {
  return layoutOf(look).listColumns < look.columns
}

/** The width of the preview, if there is room for one. */
export function previewColumns(look: PickerLook): number {
  return look.columns - layoutOf(look).listColumns - 2
}

function linesPerRow({ rows }: PickerState): number {
  return rows.some(({ snippet }) => snippet !== undefined) ? 2 : 1
}

function layoutOf({ columns, rows }: PickerLook): { listColumns: number; bodyRows: number } {
  const listWidth = Math.max(MIN_LIST_COLUMNS, Math.floor(columns * 0.45))
  return {
    listColumns: columns >= MIN_COLUMNS_FOR_PREVIEW ? listWidth : columns,
    bodyRows: Math.max(1, rows - LINES_AROUND),
  }
}

const PROMPT = "❯ "

function wordsLine(state: PickerState, look: PickerLook): { line: string; column: number } {
  const rightText = filterAndCount(state, look)
  const room = Math.max(8, look.columns - PROMPT.length - widthOf(rightText) - 2)
  const { text, cursor } = state.line
  const textBefore = text.slice(0, cursor)
  // A line too long for the screen is shown around the cursor.
  const shownBefore = widthOf(textBefore) < room ? textBefore : endThatFits(textBefore, room - 2)
  const visibleText = cutToColumns(shownBefore + text.slice(cursor), room)
  const inputText = text === "" ? paint(look, "dim", cutToColumns("type to search", room)) : visibleText
  const column = PROMPT.length + widthOf(shownBefore)
  const gap = " ".repeat(
    Math.max(
      0,
      look.columns - PROMPT.length - widthOf(text === "" ? "type to search" : visibleText) - widthOf(rightText),
    ),
  )
  return { line: `${paint(look, "cyan", PROMPT)}${inputText}${gap}${paint(look, "dim", rightText)}`, column }
}

/** The filters, the count and the progress of the sync, at the right: `codex · this project · 7d  12+  ⟳ 3 of 9`. */
function filterAndCount({ filter, rows, hasMore, syncing, isFinding }: PickerState, { columns }: PickerLook): string {
  const filters = [
    filter.source === undefined ? "" : agentWord(filter.source),
    filter.here ? "this project" : "",
    filter.days === undefined ? "" : `${filter.days}d`,
  ].filter((filterText) => filterText !== "")
  const count = isFinding ? "…" : `${rows.length}${hasMore ? "+" : ""}`
  const parts = [filters.join(" · "), count, ...(syncing === "" ? [] : [columns < 60 ? "⟳" : `⟳ ${syncing}`])]
  return parts.filter((part) => part !== "").join("  ")
}

function ruleLine(note: string, junction: string, look: PickerLook): string {
  const { listColumns } = layoutOf(look)
  const rule =
    junction === "─"
      ? "─".repeat(look.columns)
      : `${"─".repeat(listColumns)}${junction}${"─".repeat(Math.max(0, look.columns - listColumns - 1))}`
  if (note === "") return paint(look, "dim", rule)
  const text = ` ${clip(safeLine(asTyped(note, look)), look.columns - 4)} `
  return paint(look, "dim", "─") + paint(look, "yellow", text) + paint(look, "dim", rule.slice(1 + widthOf(text)))
}

function bodyLines(state: PickerState, preview: Preview | undefined, look: PickerLook): string[] {
  if (state.menu) return menuLines(state, look)
  const { listColumns, bodyRows } = layoutOf(look)
  const page = rowsPerPage(state, look)
  const visibleRows = state.rows.slice(state.top, state.top + page)
  const widths = rowWidths(state.rows, listColumns, look.now)
  const list =
    visibleRows.length === 0
      ? emptyLines(state).map((line) => `  ${clip(line, listColumns - 2)}`)
      : visibleRows.flatMap((row, i) =>
          rowLines(row, {
            ...look,
            columns: listColumns,
            isSelected: state.top + i === state.selected,
            hasSnippet: linesPerRow(state) === 2,
            ...widths,
          }),
        )
  if (!hasPreview(look)) return list
  const previewText = preview ? previewLines(preview, previewColumns(look), bodyRows, state.line.text, look) : []
  const bar = paint(look, "dim", "│")
  return Array.from({ length: bodyRows }, (_, i) =>
    `${padEnd(list[i] ?? "", listColumns)}${bar}${previewText[i] === undefined ? "" : ` ${previewText[i]}`}`.trimEnd(),
  )
}

function emptyLines({ isFinding, line, filter }: PickerState): string[] {
  if (isFinding) return []
  const isFiltered = filter.source !== undefined || filter.here || filter.days !== undefined
  if (line.text === "" && !isFiltered) return ["No conversations yet."]
  return ["Nothing found.", ...(line.text === "" ? [] : ["Esc clears the words."]), ...(isFiltered ? [WIDEN_HINT] : [])]
}

const KEY_COLUMNS = 13
const WIDEN_HINT = "^O changes agent, project and time."

function menuLines({ menu, openable }: PickerState, look: PickerLook): string[] {
  if (menu?.type === "problem")
    return [
      paint(look, "bold", clip("  This conversation cannot be resumed", look.columns)),
      "",
      ...wrap(safeLine(asTyped(menu.text, look)), look.columns - 4).map((line) => `  ${line}`),
      "",
      paint(
        look,
        "dim",
        clip("  h hands it over to another agent, Tab reads it, any other key goes back", look.columns),
      ),
    ]
  const row = (keys: string, description: string) =>
    `  ${paint(look, "cyan", padEnd(keys, KEY_COLUMNS))}${clip(description, look.columns - KEY_COLUMNS - 2)}`
  if (menu?.type === "hand_over")
    return [
      paint(look, "bold", "  Hand over to"),
      "",
      ...openable.map(
        (source, i) =>
          `${menu.selected === i ? paint(look, "cyan", "▌") : " "} ${i + 1}  ${clip(safeLine(agentOf(source)?.name ?? source), look.columns - 5)}`,
      ),
      "",
      paint(look, "dim", clip("  Enter or its number opens it with a brief; Esc goes back", look.columns)),
    ]
  return [
    ...ACTIONS.map(({ letter, description }) => row(`${letter}  Alt-${letter.toUpperCase()}`, description)),
    "",
    ...OTHER_KEYS.map(([keys, description]) => row(keys, description)),
    "",
    paint(look, "dim", clip("  Press a letter to do that; any other key goes back", look.columns)),
  ]
}

const MORE_ROW_KEYS: [string, string][] = [
  ["Alt-H", "hand over"],
  ["Alt-C", "copy"],
]

function footLine({ notice, menu, rows }: PickerState, look: PickerLook): string {
  if (notice !== "") return paint(look, "yellow", clip(safeLine(notice), look.columns))
  if (menu) return ""
  const rowKeys: [string, string][] = [
    ["Enter", look.enter],
    ["Tab", "read"],
  ]
  const keys: [string, string][] = [
    ...(rows.length > 0 ? rowKeys : []),
    ["^O", "more"],
    ["Esc", "leave"],
    ...(rows.length > 0 ? MORE_ROW_KEYS : []),
    ["Alt-A", "agent"],
    ["Alt-P", "project"],
    ["Alt-T", "time"],
  ]
  let room = look.columns
  const fittingKeys = keys.filter(([key, label]) => {
    room -= key.length + label.length + 3
    return room >= -2
  })
  return fittingKeys.map(([key, label]) => `${paint(look, "cyan", key)} ${label}`).join("  ")
}

const ASCII_REPLACEMENTS: Record<string, string> = {
  "❯": ">",
  "▌": ">",
  "─": "-",
  "│": "|",
  "┬": "+",
  "┴": "+",
  "…": ".",
  "·": "-",
  "⟳": "*",
  "▸": ">",
}
const NON_ASCII = new RegExp(`[${Object.keys(ASCII_REPLACEMENTS).join("")}]`, "g")

/** Replaces the characters that the picker draws with ASCII characters of the same width. */
function toAscii(line: string): string {
  return line.replace(NON_ASCII, (character) => ASCII_REPLACEMENTS[character]!)
}

type RowLook = {
  columns: number
  color: boolean
  now: number
  isSelected: boolean
  hasSnippet: boolean
  /** The widths of the columns; 0 if all rows have the same value, or the title needs the room. */
  age: number
  agent: number
  project: number
}
type Widths = Pick<RowLook, "age" | "agent" | "project">

const MAX_AGENT_COLUMNS = 12
const MAX_PROJECT_COLUMNS = 14
/** The list width from which the project is shown. On narrower lists the title needs the room. */
const MIN_COLUMNS_FOR_PROJECT = 56
const MIN_COLUMNS_FOR_AGENT = 44

function rowWidths(rows: readonly PickerRow[], columns: number, now: number): Widths {
  const widest = (texts: string[]) => Math.max(0, ...texts.map(widthOf))
  const widestIfDifferent = (texts: string[]) => (new Set(texts).size > 1 ? widest(texts) : 0)
  const project = widestIfDifferent(rows.map((row) => projectName(safeLine(row.project))))
  return {
    age: widest(rows.map((row) => ageOf(row.time, now))),
    agent: columns < MIN_COLUMNS_FOR_AGENT ? 0 : widestIfDifferent(rows.map((row) => agentWord(row.source))),
    project: columns < MIN_COLUMNS_FOR_PROJECT ? 0 : Math.min(MAX_PROJECT_COLUMNS, project),
  }
}

/** A conversation in the list: title, age, agent and project; below it the snippet, if words were searched for. */
export function rowLines(row: PickerRow, look: RowLook): string[] {
  const { columns, isSelected } = look
  const mark = isSelected ? paint(look, "cyan", "▌") : " "
  const rightText = [
    paint(look, "dim", ageOf(row.time, look.now).padStart(look.age)),
    ...(look.agent > 0 ? [paint(look, colourOf(row.source), padEnd(agentWord(row.source), look.agent))] : []),
    ...(look.project > 0
      ? [paint(look, "dim", padEnd(clip(projectName(safeLine(row.project)), look.project), look.project))]
      : []),
  ].join("  ")
  const room = columns - 2 - widthOf(rightText) - 3
  const title = padEnd(clip(safeLine(row.title), room), room)
  const first = `${mark} ${isSelected ? paint(look, "bold", title) : title}  ${rightText}`
  if (!look.hasSnippet) return [first]
  return [first, `${mark}   ${paint(look, "dim", markMatches(safeLine(row.snippet ?? ""), columns - 5, look))}`]
}

/** How long ago the time was: now, 5m, 3h, 2d; after two weeks the day (02-16), and after ten months the month (2025-02). */
export function ageOf(time: string, now: number): string {
  const timestamp = Date.parse(time)
  if (Number.isNaN(timestamp)) return ""
  const minutes = Math.floor((now - timestamp) / 60_000)
  if (minutes < 1) return "now"
  if (minutes < 60) return `${minutes}m`
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h`
  const days = Math.floor((now - timestamp) / DAY_MS)
  if (days < 14) return `${days}d`
  return days < 300 ? localDay(timestamp).slice(5) : localDay(timestamp).slice(0, 7)
}

/** The short name of an agent: its first alias, if it has one. */
function agentWord(source: string): string {
  return clip(safeLine(agentOf(source)?.aliases?.[0] ?? source), MAX_AGENT_COLUMNS)
}

const COLOURS: readonly Style[] = ["cyan", "green", "magenta", "yellow", "blue"]

function colourOf(source: string): Style {
  const index = agents.findIndex((agent) => agent.source === source)
  return COLOURS[Math.max(0, index) % COLOURS.length]!
}

/** A snippet with its matches in colour (if there are colours), cut so that the first match is visible. */
function markMatches(snippet: string, columns: number, look: RowLook): string {
  const [before = "", ...rest] = snippet.split(/\*\*([^*]+)\*\*/)
  const head = widthOf(before) > columns / 2 ? `…${endThatFits(before, Math.floor(columns / 3))}` : before
  let room = columns
  let line = ""
  for (const [i, piece] of [head, ...rest].entries()) {
    const visiblePiece = clip(piece, room)
    line += i % 2 === 1 && look.color ? `\x1b[0m${paint(look, "yellow", visiblePiece)}\x1b[2m` : visiblePiece
    room -= widthOf(visiblePiece)
    if (visiblePiece !== piece || room <= 0) break
  }
  return line
}

function endThatFits(text: string, columns: number): string {
  const graphemes = graphemesOf(text)
  let width = 0
  let start = graphemes.length
  while (start > 0 && width + widthOf(graphemes[start - 1]!) <= columns) width += widthOf(graphemes[--start]!)
  return graphemes.slice(start).join("")
}
