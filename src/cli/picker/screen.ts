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
  /** The name of Enter's action, for the footer. */
  enter: string
}

export type Frame = { lines: string[]; cursor: { row: number; column: number } }

const PREVIEW_FROM_COLUMNS = 90
const MIN_LIST_COLUMNS = 44
/** The number of lines around the list: above it the words and a rule, below it a rule and the keys. */
const LINES_AROUND = 4

/** Draws the complete screen, one text per row. */
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
  const fitted = look.rows >= LINES_AROUND + 1 ? lines : [lines[0]!, ...body]
  return {
    lines: fitted.slice(0, look.rows).map((one) => (look.unicode ? one : inAscii(one))),
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
  const half = Math.max(MIN_LIST_COLUMNS, Math.floor(columns * 0.45))
  return {
    listColumns: columns >= PREVIEW_FROM_COLUMNS ? half : columns,
    bodyRows: Math.max(1, rows - LINES_AROUND),
  }
}

const PROMPT = "❯ "

function wordsLine(state: PickerState, look: PickerLook): { line: string; column: number } {
  const right = filterAndCount(state, look)
  const room = Math.max(8, look.columns - PROMPT.length - widthOf(right) - 2)
  const { text, at } = state.line
  const before = text.slice(0, at)
  // A line too long for the screen is shown around the cursor.
  const shownBefore = widthOf(before) < room ? before : endFitting(before, room - 2)
  const shown = cutToColumns(shownBefore + text.slice(at), room)
  const typed = text === "" ? paint(look, "dim", cutToColumns("type to search", room)) : shown
  const column = PROMPT.length + widthOf(shownBefore)
  const gap = " ".repeat(
    Math.max(0, look.columns - PROMPT.length - widthOf(text === "" ? "type to search" : shown) - widthOf(right)),
  )
  return { line: `${paint(look, "cyan", PROMPT)}${typed}${gap}${paint(look, "dim", right)}`, column }
}

/** The filters and the count at the right: `codex · here · 7d 12 found`. */
function filterAndCount({ filter, rows, hasMore, syncing, isFinding }: PickerState, { columns }: PickerLook): string {
  const chosen = [
    filter.source === undefined ? "" : agentWord(filter.source),
    filter.here ? "this project" : "",
    filter.days === undefined ? "" : `${filter.days}d`,
  ].filter((one) => one !== "")
  const count = isFinding ? "…" : `${rows.length}${hasMore ? "+" : ""}`
  const parts = [chosen.join(" · "), count, ...(syncing === "" ? [] : [columns < 60 ? "⟳" : `⟳ ${syncing}`])]
  return parts.filter((part) => part !== "").join("  ")
}

function ruleLine(note: string, cross: string, look: PickerLook): string {
  const { listColumns } = layoutOf(look)
  const rule =
    cross === "─"
      ? "─".repeat(look.columns)
      : `${"─".repeat(listColumns)}${cross}${"─".repeat(Math.max(0, look.columns - listColumns - 1))}`
  if (note === "") return paint(look, "dim", rule)
  const text = ` ${clip(safeLine(asTyped(note, look)), look.columns - 4)} `
  return paint(look, "dim", "─") + paint(look, "yellow", text) + paint(look, "dim", rule.slice(1 + widthOf(text)))
}

function bodyLines(state: PickerState, preview: Preview | undefined, look: PickerLook): string[] {
  if (state.menu) return menuLines(state, look)
  const { listColumns, bodyRows } = layoutOf(look)
  const page = rowsPerPage(state, look)
  const shown = state.rows.slice(state.top, state.top + page)
  const widths = rowWidths(state.rows, listColumns, look.now)
  const list =
    shown.length === 0
      ? emptyLines(state).map((line) => `  ${clip(line, listColumns - 2)}`)
      : shown.flatMap((row, i) =>
          rowLines(row, {
            ...look,
            columns: listColumns,
            isSelected: state.top + i === state.selected,
            hasSnippet: linesPerRow(state) === 2,
            ...widths,
          }),
        )
  if (!hasPreview(look)) return list
  const beside = preview ? previewLines(preview, previewColumns(look), bodyRows, state.line.text, look) : []
  const bar = paint(look, "dim", "│")
  return Array.from({ length: bodyRows }, (_, i) =>
    `${padEnd(list[i] ?? "", listColumns)}${bar}${beside[i] === undefined ? "" : ` ${beside[i]}`}`.trimEnd(),
  )
}

function emptyLines({ isFinding, line, filter }: PickerState): string[] {
  if (isFinding) return []
  const narrowed = filter.source !== undefined || filter.here || filter.days !== undefined
  if (line.text === "" && !narrowed) return ["No conversations yet."]
  return ["Nothing found.", ...(line.text === "" ? [] : ["Esc clears the words."]), ...(narrowed ? [WIDEN_HINT] : [])]
}

const KEY_COLUMNS = 13
const WIDEN_HINT = "^O changes agent, project and time."

function menuLines({ menu, openable }: PickerState, look: PickerLook): string[] {
  if (menu?.type === "problem")
    return [
      paint(look, "bold", clip("  It cannot be resumed", look.columns)),
      "",
      ...wrap(safeLine(asTyped(menu.text, look)), look.columns - 4).map((line) => `  ${line}`),
      "",
      paint(
        look,
        "dim",
        clip("  h hands it over to another agent, Tab reads it, any other key goes back", look.columns),
      ),
    ]
  const row = (keys: string, says: string) =>
    `  ${paint(look, "cyan", padEnd(keys, KEY_COLUMNS))}${clip(says, look.columns - KEY_COLUMNS - 2)}`
  if (menu?.type === "hand_over")
    return [
      paint(look, "bold", "  Hand over to"),
      "",
      ...openable.map(
        (source, i) =>
          `${menu.at === i ? paint(look, "cyan", "▌") : " "} ${i + 1}  ${clip(safeLine(agentOf(source)?.name ?? source), look.columns - 5)}`,
      ),
      "",
      paint(look, "dim", clip("  Enter or its number opens it with a brief; Esc goes back", look.columns)),
    ]
  return [
    ...ACTIONS.map(({ letter, says }) => row(`${letter}  Alt-${letter.toUpperCase()}`, says)),
    "",
    ...OTHER_KEYS.map(([keys, says]) => row(keys, says)),
    "",
    paint(look, "dim", clip("  A letter does it, any other key goes back", look.columns)),
  ]
}

const MORE_OF_ROW: [string, string][] = [
  ["Alt-H", "hand over"],
  ["Alt-C", "copy"],
]

function footLine({ notice, menu, rows }: PickerState, look: PickerLook): string {
  if (notice !== "") return paint(look, "yellow", clip(safeLine(notice), look.columns))
  if (menu) return ""
  const ofRow: [string, string][] = [
    ["Enter", look.enter],
    ["Tab", "read"],
  ]
  const keys: [string, string][] = [
    ...(rows.length > 0 ? ofRow : []),
    ["^O", "more"],
    ["Esc", "leave"],
    ...(rows.length > 0 ? MORE_OF_ROW : []),
    ["Alt-A", "agent"],
    ["Alt-P", "project"],
    ["Alt-T", "time"],
  ]
  let room = look.columns
  const fitting = keys.filter(([key, says]) => {
    room -= key.length + says.length + 3
    return room >= -2
  })
  return fitting.map(([key, says]) => `${paint(look, "cyan", key)} ${says}`).join("  ")
}

const ASCII: Record<string, string> = {
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
const OTHER_THAN_ASCII = new RegExp(`[${Object.keys(ASCII).join("")}]`, "g")

/** Replaces the characters that the picker draws with ASCII characters of the same width. */
function inAscii(line: string): string {
  return line.replace(OTHER_THAN_ASCII, (sign) => ASCII[sign]!)
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
const PROJECT_FROM_COLUMNS = 56
const AGENT_FROM_COLUMNS = 44

function rowWidths(rows: readonly PickerRow[], columns: number, now: number): Widths {
  const widest = (texts: string[]) => Math.max(0, ...texts.map(widthOf))
  const differing = (texts: string[]) => (new Set(texts).size > 1 ? widest(texts) : 0)
  const project = differing(rows.map((row) => projectName(safeLine(row.project))))
  return {
    age: widest(rows.map((row) => ageOf(row.time, now))),
    agent: columns < AGENT_FROM_COLUMNS ? 0 : differing(rows.map((row) => agentWord(row.source))),
    project: columns < PROJECT_FROM_COLUMNS ? 0 : Math.min(MAX_PROJECT_COLUMNS, project),
  }
}

/** A conversation in the list: title, age, agent and project; below it the snippet, if words were searched for. */
export function rowLines(row: PickerRow, look: RowLook): string[] {
  const { columns, isSelected } = look
  const mark = isSelected ? paint(look, "cyan", "▌") : " "
  const right = [
    paint(look, "dim", ageOf(row.time, look.now).padStart(look.age)),
    ...(look.agent > 0 ? [paint(look, colourOf(row.source), padEnd(agentWord(row.source), look.agent))] : []),
    ...(look.project > 0
      ? [paint(look, "dim", padEnd(clip(projectName(safeLine(row.project)), look.project), look.project))]
      : []),
  ].join("  ")
  const room = columns - 2 - widthOf(right) - 3
  const title = padEnd(clip(safeLine(row.title), room), room)
  const first = `${mark} ${isSelected ? paint(look, "bold", title) : title}  ${right}`
  if (!look.hasSnippet) return [first]
  return [first, `${mark}   ${paint(look, "dim", markMatches(safeLine(row.snippet ?? ""), columns - 5, look))}`]
}

/** The age of a time: now, 5m, 3h, 2d; after two weeks the day (02-16), and after ten months the month (2025-02). */
export function ageOf(time: string, now: number): string {
  const at = Date.parse(time)
  if (Number.isNaN(at)) return ""
  const minutes = Math.floor((now - at) / 60_000)
  if (minutes < 1) return "now"
  if (minutes < 60) return `${minutes}m`
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h`
  const days = Math.floor((now - at) / DAY_MS)
  if (days < 14) return `${days}d`
  return days < 300 ? localDay(at).slice(5) : localDay(at).slice(0, 7)
}

/** The shortest word that people type for an agent. */
function agentWord(source: string): string {
  return clip(safeLine(agentOf(source)?.aliases?.[0] ?? source), MAX_AGENT_COLUMNS)
}

const COLOURS: readonly Style[] = ["cyan", "green", "magenta", "yellow", "blue"]

function colourOf(source: string): Style {
  const at = agents.findIndex((agent) => agent.source === source)
  return COLOURS[Math.max(0, at) % COLOURS.length]!
}

/** A snippet with its matches in colour (if there are colours), cut so that the first match is visible. */
function markMatches(snippet: string, columns: number, look: RowLook): string {
  const [before = "", ...rest] = snippet.split(/\*\*([^*]+)\*\*/)
  const head = widthOf(before) > columns / 2 ? `…${endFitting(before, Math.floor(columns / 3))}` : before
  let room = columns
  let line = ""
  for (const [i, piece] of [head, ...rest].entries()) {
    const shown = clip(piece, room)
    line += i % 2 === 1 && look.color ? `\x1b[0m${paint(look, "yellow", shown)}\x1b[2m` : shown
    room -= widthOf(shown)
    if (shown !== piece || room <= 0) break
  }
  return line
}

function endFitting(text: string, columns: number): string {
  const signs = graphemesOf(text)
  let width = 0
  let from = signs.length
  while (from > 0 && width + widthOf(signs[from - 1]!) <= columns) width += widthOf(signs[--from]!)
  return signs.slice(from).join("")
}
