import { agentOf, agents } from "../../agents/registry.ts"
import {
  clip,
  cutToColumns,
  endThatFits,
  markWords,
  padEnd,
  paint,
  type Style,
  safeLine,
  widthOf,
  wrap,
} from "../../render/terminal.ts"
import { markedTitle, projectNames, shortDate } from "../../render/words.ts"
import { snippetLine } from "../print/search.ts"
import { asTyped, titleColumns } from "../print/words.ts"
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
  /** The name of the Enter key's action in the footer. */
  enter: string
}

export type Frame = { lines: string[]; cursor: { row: number; column: number } }

/** On a narrower screen the preview is below the list, if there are enough rows for both. */
const MIN_COLUMNS_FOR_SPLIT = 90
const MIN_COLUMNS_FOR_PREVIEW_BELOW = 50
const MIN_ROWS_FOR_PREVIEW_BELOW = 14
/** The room that a row needs besides its title: with the mark and the date, and with the agent or project too. */
const DATE_COLUMNS = 12
const FACTS_COLUMNS = 29
/** The width of the preview that is kept free from agents and projects. */
const PREVIEW_COLUMNS = 40
/** The number of lines around the list: above it the words and a rule, below it a rule and the keys. */
const LINES_AROUND = 4

/** Draws the complete screen, as one string per row. */
export function drawScreen(state: PickerState, preview: Preview | undefined, look: PickerLook): Frame {
  const { bodyRows, isSplit: hasColumns } = layoutOf(look)
  const { line, column } = wordsLine(state, look)
  const body = bodyLines(state, preview, look)
  const isSplit = hasColumns && (!state.menu || typedMark(state) !== undefined)
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

export function rowsPerPage(state: PickerState, look: PickerLook): number {
  return Math.max(1, Math.floor(layoutOf(look).listRows / linesPerRow(state)))
}

/** The width of the preview; 0 if there is no room for one. */
export function previewColumns(look: PickerLook): number {
  return layoutOf(look).previewColumns
}

function linesPerRow({ rows }: PickerState): number {
  return rows.some(({ snippet }) => snippet !== undefined) ? 2 : 1
}

type Layout = {
  /** True if the preview is beside the list, not below it. */
  isSplit: boolean
  listColumns: number
  listRows: number
  previewColumns: number
  previewRows: number
  bodyRows: number
}

function layoutOf({ columns, rows }: PickerLook): Layout {
  const bodyRows = Math.max(1, rows - LINES_AROUND)
  if (columns >= MIN_COLUMNS_FOR_SPLIT) {
    const titles = titleColumns(columns)
    const withFacts = Math.min(titles + FACTS_COLUMNS, columns - PREVIEW_COLUMNS)
    const listColumns = Math.max(titles + DATE_COLUMNS, withFacts)
    const previewColumns = columns - listColumns - 2
    return { isSplit: true, listColumns, listRows: bodyRows, previewColumns, previewRows: bodyRows, bodyRows }
  }
  const isBelow = columns >= MIN_COLUMNS_FOR_PREVIEW_BELOW && bodyRows >= MIN_ROWS_FOR_PREVIEW_BELOW
  const previewRows = isBelow ? Math.floor(bodyRows * 0.4) : 0
  return {
    isSplit: false,
    listColumns: columns,
    listRows: isBelow ? bodyRows - previewRows - 1 : bodyRows,
    previewColumns: isBelow ? columns - 2 : 0,
    previewRows,
    bodyRows,
  }
}

const PROMPT = "❯ "
const MARK_PROMPTS = { tag: "Tags", title: "Title" }

/** The tags or the title that are being typed in the first line. */
function typedMark({ menu }: PickerState) {
  return menu?.type === "tag" || menu?.type === "title" ? menu : undefined
}

function wordsLine(state: PickerState, look: PickerLook): { line: string; column: number } {
  const typed = typedMark(state)
  const prompt = typed ? `${MARK_PROMPTS[typed.type]} ${PROMPT}` : PROMPT
  const hint = typed ? "" : "type to search"
  const rightText = filterAndCount(state, look)
  const room = Math.max(8, look.columns - prompt.length - widthOf(rightText) - 2)
  const { text, cursor } = typed?.line ?? state.line
  const textBefore = text.slice(0, cursor)
  // If the line is too long for the screen, the part around the cursor is shown.
  const shownBefore = widthOf(textBefore) < room ? textBefore : endThatFits(textBefore, room - 2)
  const visibleText = cutToColumns(shownBefore + text.slice(cursor), room)
  const inputText = text === "" ? paint(look, "dim", cutToColumns(hint, room)) : visibleText
  const column = prompt.length + widthOf(shownBefore)
  const gap = " ".repeat(
    Math.max(0, look.columns - prompt.length - widthOf(text === "" ? hint : visibleText) - widthOf(rightText)),
  )
  return { line: `${paint(look, "cyan", prompt)}${inputText}${gap}${paint(look, "dim", rightText)}`, column }
}

/** The filters, the count and the progress of the sync, at the right: `codex · this project · 7d  12+  ⟳ 3 of 9`. */
function filterAndCount({ filter, rows, hasMore, syncing, isFinding }: PickerState, { columns }: PickerLook): string {
  const filters = [
    filter.source === undefined ? "" : shortAgentName(filter.source),
    filter.scope === "all" ? "" : `this ${filter.scope}`,
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
  if (state.menu && !typedMark(state)) return menuLines(state, look)
  const { isSplit, listColumns, listRows, previewColumns, previewRows, bodyRows } = layoutOf(look)
  const page = rowsPerPage(state, look)
  const visibleRows = state.rows.slice(state.top, state.top + page)
  const columns = rowColumns(state.rows, listColumns, look)
  const list =
    visibleRows.length === 0
      ? emptyLines(state).map((line) => `  ${clip(line, listColumns - 2)}`)
      : visibleRows.flatMap((row, i) =>
          rowLines(row, {
            ...look,
            columns: listColumns,
            isSelected: state.top + i === state.selected,
            hasSnippet: linesPerRow(state) === 2,
            ...columns,
          }),
        )
  if (previewColumns === 0) return list
  const previewText = preview ? previewLines(preview, previewColumns, previewRows, state.line.text, look) : []
  if (!isSplit)
    return [
      ...Array.from({ length: listRows }, (_, i) => list[i] ?? ""),
      paint(look, "dim", "─".repeat(look.columns)),
      ...previewText.map((line) => `  ${line}`.trimEnd()),
    ]
  const bar = paint(look, "dim", "│")
  return Array.from({ length: bodyRows }, (_, i) =>
    `${padEnd(list[i] ?? "", listColumns)}${bar}${previewText[i] === undefined ? "" : ` ${previewText[i]}`}`.trimEnd(),
  )
}

function emptyLines({ isFinding, line, filter, syncing }: PickerState): string[] {
  if (isFinding) return []
  const isFiltered = filter.source !== undefined || filter.scope !== "all" || filter.days !== undefined
  if (line.text === "" && !isFiltered)
    return syncing === ""
      ? ["No conversations yet."]
      : ["Reading what your coding agents wrote, the newest first.", "It stays on this machine, in dex's folder."]
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

const MARK_KEYS: [string, string][] = [
  ["Enter", "save"],
  ["Esc", "back"],
]
const MORE_ROW_KEYS: [string, string][] = [
  ["Alt-H", "hand over"],
  ["Alt-C", "copy"],
]

function footLine(state: PickerState, look: PickerLook): string {
  const { notice, menu, rows } = state
  if (notice !== "") return paint(look, "yellow", clip(safeLine(notice), look.columns))
  if (menu && !typedMark(state)) return ""
  const rowKeys: [string, string][] = [
    ["Enter", look.enter],
    ["Tab", "read"],
  ]
  const keys: [string, string][] = menu
    ? MARK_KEYS
    : [
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
  "★": "*",
}
const NON_ASCII = new RegExp(`[${Object.keys(ASCII_REPLACEMENTS).join("")}]`, "g")

/** Replaces the characters that the picker draws with ASCII characters of the same width. */
function toAscii(line: string): string {
  return line.replace(NON_ASCII, (character) => ASCII_REPLACEMENTS[character]!)
}

type RowLook = RowColumns & { columns: number; color: boolean; now: number; isSelected: boolean; hasSnippet: boolean }
/** The widths of the columns. 0 hides a column, because all rows have the same value, or the titles need the room. */
type RowColumns = {
  ageWidth: number
  agentWidth: number
  projectWidth: number
  nameOf: (project: string) => string
}

const MAX_AGENT_COLUMNS = 12
const MIN_FACT_COLUMNS = 8
const MAX_PROJECT_COLUMNS = 14

function rowColumns(rows: readonly PickerRow[], columns: number, look: PickerLook): RowColumns {
  const widest = (texts: string[]) => Math.max(0, ...texts.map(widthOf))
  const nameOf = projectNames(rows.map(({ project }) => safeLine(project)))
  const ageWidth = widest(rows.map(({ time }) => shortDate(time, look.now)))
  const titleWidth = Math.min(widest(rows.map((row) => safeLine(markedTitle(row)))), titleColumns(look.columns))
  let room = columns - 2 - titleWidth - 2 - ageWidth - 1
  const widthFor = (texts: string[]) => {
    const width = Math.min(room - 2, new Set(texts).size > 1 ? widest(texts) : 0)
    if (width < Math.min(MIN_FACT_COLUMNS, widest(texts)) || width <= 0) return 0
    room -= width + 2
    return width
  }
  const projectWidth = widthFor(rows.map(({ project }) => clip(nameOf(safeLine(project)), MAX_PROJECT_COLUMNS)))
  const agentWidth = widthFor(rows.map(({ source }) => shortAgentName(source)))
  return { ageWidth, agentWidth, projectWidth, nameOf }
}

/** A conversation in the list: title, age, agent and project; below it the snippet, if words were searched for. */
export function rowLines(row: PickerRow, look: RowLook): string[] {
  const { columns, isSelected } = look
  const mark = isSelected ? paint(look, "cyan", "▌") : " "
  const rightText = [
    paint(look, "dim", shortDate(row.time, look.now).padStart(look.ageWidth)),
    ...(look.agentWidth > 0
      ? [
          paint(
            look,
            agentColour(row.source),
            padEnd(clip(shortAgentName(row.source), look.agentWidth), look.agentWidth),
          ),
        ]
      : []),
    ...(look.projectWidth > 0
      ? [paint(look, "dim", padEnd(clip(look.nameOf(safeLine(row.project)), look.projectWidth), look.projectWidth))]
      : []),
  ].join("  ")
  const room = columns - 2 - widthOf(rightText) - 3
  const title = padEnd(clip(safeLine(markedTitle(row)), room), room)
  const firstLine = `${mark} ${isSelected ? paint(look, "bold", title) : title}  ${rightText}`
  if (!look.hasSnippet) return [firstLine]
  return [firstLine, `${mark}   ${snippetLine(row.snippet ?? "", columns - 5, look, "dim")}`]
}

/** The short name of an agent: its first alias, if it has one. */
function shortAgentName(source: string): string {
  return clip(safeLine(agentOf(source)?.aliases?.[0] ?? source), MAX_AGENT_COLUMNS)
}

const AGENT_COLOURS: readonly Style[] = ["cyan", "green", "magenta", "yellow", "blue"]

function agentColour(source: string): Style {
  const index = agents.findIndex((agent) => agent.source === source)
  return AGENT_COLOURS[Math.max(0, index) % AGENT_COLOURS.length]!
}

/** The contents of the pane next to the list. */
export type Preview = {
  ref: string
  title: string
  facts: string[]
  /** The lines of each message, as the reader draws them at this width. */
  messages: string[][]
}

/** The maximum number of lines below the head of one message, so that several messages fit. */
const MAX_BODY_LINES = 7
const MAX_FACT_LINES = 3

export function previewLines(
  preview: Preview,
  columns: number,
  rows: number,
  typed: string,
  look: { color: boolean },
): string[] {
  const words = look.color ? wordsOf(typed) : undefined
  const lines = [
    ...wrap(safeLine(preview.title), columns)
      .slice(0, 2)
      .map((line) => paint(look, "bold", line)),
    ...wrap(safeLine(preview.facts.join(" · ")), columns)
      .slice(0, MAX_FACT_LINES)
      .map((line) => paint(look, "dim", line)),
  ]
  for (const message of preview.messages) {
    if (lines.length >= rows) break
    // Omits blank lines between paragraphs, because there is little room.
    const [first = "", ...rest] = message.filter((line, i) => i === 0 || line !== "")
    const body = rest.slice(0, MAX_BODY_LINES)
    const omitted = rest.length - body.length
    lines.push(...[first, ...body].map((line) => (words ? markWords(line, words) : line)))
    if (omitted > 0) lines.push(paint(look, "dim", `… ${omitted} more ${omitted === 1 ? "line" : "lines"}`))
  }
  return lines.slice(0, rows)
}

/** Matches the typed words even inside longer words, because the last word may be incomplete. */
function wordsOf(typed: string): RegExp | undefined {
  const words = typed.match(/[\p{L}\p{N}_]{2,}/gu) ?? []
  return words.length === 0 ? undefined : new RegExp(words.join("|"), "giu")
}
