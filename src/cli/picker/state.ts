import { STAR_TAG } from "../../core/conversation.ts"
import { graphemesOf, safeLine } from "../../render/terminal.ts"
import type { Key } from "./keys.ts"

/** A conversation in the list. `message` is the number of the matching message, `snippet` a part of its text. */
export type PickerRow = {
  ref: string
  /** If a subagent's message matches: the conversation that started it, which the row stands for. */
  parent?: string
  title: string
  time: string
  source: string
  project: string
  tags?: readonly string[]
  message?: number
  snippet?: string
}

export const SCOPES = ["all", "project", "folder"] as const
/** Narrows the list to one agent, to the current project or folder, or to the last days. */
export type PickerFilter = { source?: string; scope: (typeof SCOPES)[number]; days?: number }

export type PickerState = {
  line: TypedLine
  filter: PickerFilter
  rows: readonly PickerRow[]
  /** True if more conversations were found than are listed. */
  hasMore: boolean
  selected: number
  /** The first row on the screen. */
  top: number
  /** The agents that have conversations; undefined until they are looked up. */
  sources?: readonly string[]
  /** True if the key for the next agent was pressed before the agents were known. */
  wantsAgent: boolean
  /** The agents that a conversation can be handed over to. */
  openable: readonly string[]
  menu?:
    | { type: "actions" }
    | { type: "hand_over"; selected: number }
    | { type: "problem"; text: string }
    /** A title or tags are being typed. */
    | { type: "tag" | "title"; row: PickerRow; line: TypedLine }
  /** The line above the list, with news and warnings. */
  note: string
  /** A message about the last key press, shown until the next one. */
  notice: string
  /** The progress of the background sync; empty when it has ended. */
  syncing: string
  /** True while the rows still belong to earlier words or filters. */
  isFinding: boolean
  /** True if the list began empty and no key was pressed yet. The first row then stays selected while the list fills. */
  isUntouched: boolean
}

/** An action that a key requests from the picker. */
export type PickerAction =
  | { type: "find" }
  | { type: "leave" }
  | { type: "suspend" }
  | { type: "redraw" }
  | { type: "resume"; row: PickerRow }
  | { type: "read"; row: PickerRow }
  | { type: "copy"; row: PickerRow }
  | { type: "view"; row: PickerRow }
  | { type: "hand_over"; row: PickerRow; to: string }
  | { type: "mark"; row: PickerRow; marks: RowMarks }

/** The tags that a row gets and loses, and its new title. */
export type RowMarks = { tag?: string[]; no_tag?: string[]; title?: string }

export type PickerStep = { state: PickerState; action?: PickerAction }

export function startingState(
  text: string,
  openable: readonly string[],
  scope: PickerFilter["scope"] = "all",
): PickerState {
  return {
    line: typedLineOf(text),
    filter: { scope },
    rows: [],
    hasMore: false,
    selected: 0,
    top: 0,
    wantsAgent: false,
    openable,
    note: "",
    notice: "",
    syncing: "",
    isFinding: text !== "",
    isUntouched: false,
  }
}

/** The conversation that a row stands for. Each has one row. */
export function conversationOfRow({ parent, ref }: PickerRow): string {
  return parent ?? ref
}

export function selectedRow({ rows, selected }: PickerState): PickerRow | undefined {
  return rows[selected]
}

/** The state after a key press, and the action that the key requests. `page` is the number of rows on the screen. */
export function afterKey(previous: PickerState, key: Key, page: number): PickerStep {
  const state = { ...previous, notice: "", isUntouched: false }
  if (key.name === "ctrl-c") return { state, action: { type: "leave" } }
  if (key.name === "ctrl-z") return { state, action: { type: "suspend" } }
  if (key.name === "ctrl-l") return { state, action: { type: "redraw" } }
  if (state.menu?.type === "hand_over") return afterHandoverKey(state, state.menu.selected, key)
  if (state.menu?.type === "tag" || state.menu?.type === "title") return afterMarkKey(state, state.menu, key)
  if (state.menu) return afterMenuKey(state, state.menu.type, key)
  const newSelection = move(state, key.name, page)
  if (newSelection !== undefined) return { state: scrollToSelected({ ...state, selected: newSelection }, page) }
  return afterCommandKey(state, key) ?? afterEdit(state, key)
}

/**
 * Shows the rows that were found. If they are new, the first one is selected. Otherwise the selected conversation stays selected,
 * at the same position on the screen.
 */
export function withRows(
  state: PickerState,
  result: { rows: readonly PickerRow[]; hasMore: boolean; isNew: boolean },
  page: number,
): PickerState {
  const { rows, hasMore, isNew } = result
  const nextState = { ...state, rows, hasMore, isFinding: false }
  const selectedBefore = selectedRow(state)
  const sameIndex = rows.findIndex(
    (row) => selectedBefore && conversationOfRow(row) === conversationOfRow(selectedBefore),
  )
  if (isNew || state.isUntouched) return { ...nextState, selected: 0, top: 0 }
  const selected = sameIndex === -1 ? clamp(state.selected, 0, rows.length - 1) : sameIndex
  return scrollToSelected({ ...nextState, selected, top: state.top + selected - state.selected }, page)
}

export function scrollToSelected(state: PickerState, page: number): PickerState {
  const { selected, rows } = state
  const lowestTop = clamp(selected - page + 1, 0, rows.length)
  const visibleTop = clamp(state.top, lowestTop, selected)
  return { ...state, top: clamp(visibleTop, 0, Math.max(0, rows.length - page)) }
}

function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(max, value))
}

const UP_KEYS = ["up", "ctrl-p", "ctrl-k"]
const DOWN_KEYS = ["down", "ctrl-n", "ctrl-j"]

function move({ selected, rows, top }: PickerState, name: string, page: number): number | undefined {
  const lastRow = Math.max(0, rows.length - 1)
  const rowAt = (row: number) => clamp(row, 0, lastRow)
  if (UP_KEYS.includes(name)) return rowAt(selected - 1)
  if (DOWN_KEYS.includes(name)) return rowAt(selected + 1)
  if (name === "page-up") return rowAt(selected > top ? top : selected - page)
  if (name === "page-down") return rowAt(selected < top + page - 1 ? top + page - 1 : selected + page)
  if (name === "home") return 0
  return name === "end" ? lastRow : undefined
}

function afterCommandKey(state: PickerState, { name, text }: Key): PickerStep | undefined {
  const row = selectedRow(state)
  const isEmpty = state.line.text === ""
  if (name === "enter") return row ? { state, action: { type: "resume", row } } : { state }
  if (name === "tab") return row ? { state, action: { type: "read", row } } : { state }
  if (name === "ctrl-g" || (name === "ctrl-d" && isEmpty)) return { state, action: { type: "leave" } }
  if (name === "escape")
    return isEmpty
      ? { state, action: { type: "leave" } }
      : {
          state: { ...state, line: { ...typedLineOf(""), cut: state.line.cut }, isFinding: true },
          action: { type: "find" },
        }
  if (name === "f1" || name === "ctrl-o" || (name === "text" && text === "?" && isEmpty))
    return { state: { ...state, menu: { type: "actions" } } }
  const action = ACTIONS.find(({ letter }) => name === `alt-${letter}`)
  return action && afterAction(state, action.name)
}

/** Sets the agents, and then handles a key press that waited for them. */
export function withSources(state: PickerState, sources: readonly string[]): PickerStep {
  const stateWithSources = { ...state, sources, wantsAgent: false }
  return state.wantsAgent ? afterAction(stateWithSources, "agent") : { state: stateWithSources }
}

function afterEdit(state: PickerState, key: Key): PickerStep {
  const line = editLine(state.line, key)
  if (line === undefined) return { state }
  if (line.text === state.line.text) return { state: { ...state, line } }
  return { state: { ...state, line, isFinding: true }, action: { type: "find" } }
}

function afterMenuKey(state: PickerState, type: "actions" | "problem", { name, text }: Key): PickerStep {
  const { menu: _, ...closed } = state
  const row = selectedRow(state)
  if (name === "tab" && row) return { state: closed, action: { type: "read", row } }
  const action = ACTIONS.find(({ letter }) => text?.toLowerCase() === letter || name === `alt-${letter}`)
  return action && (type === "actions" || action.name === "hand_over")
    ? afterAction(closed, action.name)
    : { state: closed }
}

function afterAction(state: PickerState, name: ActionName): PickerStep {
  const row = selectedRow(state)
  const { filter } = state
  if (name === "agent")
    return state.sources === undefined
      ? { state: { ...state, wantsAgent: true } }
      : withFilter(state, withSource(filter, nextValue(state.sources, filter.source)))
  if (name === "project") return withFilter(state, { ...filter, scope: nextValue(SCOPES, filter.scope) ?? "all" })
  if (name === "time") return withFilter(state, withDays(filter, nextValue(DAYS, filter.days)))
  if (!row) return { state }
  const { tags = [] } = row
  if (name === "star")
    return {
      state,
      action: { type: "mark", row, marks: tags.includes(STAR_TAG) ? { no_tag: [STAR_TAG] } : { tag: [STAR_TAG] } },
    }
  if (name === "tag") return { state: { ...state, menu: { type: name, row, line: typedLineOf(otherTags(tags)) } } }
  if (name === "title")
    return { state: { ...state, menu: { type: name, row, line: typedLineOf(safeLine(row.title)) } } }
  if (name === "copy" || name === "view") return { state, action: { type: name, row } }
  if (state.openable.length === 0) return { state: { ...state, notice: NO_OPENABLE_AGENT } }
  return { state: { ...state, menu: { type: "hand_over", selected: 0 } } }
}

const NO_OPENABLE_AGENT = "No other agent is installed (none was found on PATH)."

const DAYS: readonly number[] = [1, 7, 30]

/** The element after `current`: the first one if there is no current one, and undefined after the last. */
function nextValue<T>(all: readonly T[], current: T | undefined): T | undefined {
  return all[current === undefined ? 0 : all.indexOf(current) + 1]
}

function withSource({ source: _, ...rest }: PickerFilter, source: string | undefined): PickerFilter {
  return { ...rest, source }
}

function withDays({ days: _, ...rest }: PickerFilter, days: number | undefined): PickerFilter {
  return { ...rest, days }
}

function withFilter(state: PickerState, filter: PickerFilter): PickerStep {
  return { state: { ...state, filter, isFinding: true }, action: { type: "find" } }
}

function afterHandoverKey(state: PickerState, selected: number, { name, text = "" }: Key): PickerStep {
  const { menu: _, ...closed } = state
  const lastIndex = state.openable.length - 1
  const chosen = name === "enter" ? selected : /^[1-9]$/.test(text) ? Number(text) - 1 : undefined
  const to = chosen === undefined ? undefined : state.openable[chosen]
  const row = selectedRow(state)
  if (to !== undefined && row) return { state: closed, action: { type: "hand_over", row, to } }
  if (!UP_KEYS.includes(name) && !DOWN_KEYS.includes(name)) return { state: closed }
  return {
    state: {
      ...state,
      menu: { type: "hand_over", selected: clamp(selected + (UP_KEYS.includes(name) ? -1 : 1), 0, lastIndex) },
    },
  }
}

/** The tags without the star, as they are typed. */
function otherTags(tags: readonly string[]): string {
  return tags.filter((tag) => tag !== STAR_TAG).join(" ")
}

function afterMarkKey(
  state: PickerState,
  { type, row, line }: { type: "tag" | "title"; row: PickerRow; line: TypedLine },
  key: Key,
): PickerStep {
  const { menu: _, ...closed } = state
  if (key.name === "escape" || key.name === "ctrl-g") return { state: closed }
  if (key.name !== "enter") return { state: { ...state, menu: { type, row, line: editLine(line, key) ?? line } } }
  if (type === "title" && line.text === safeLine(row.title)) return { state: closed } // The agent's title stays the agent's.
  if (type === "title") return { state: closed, action: { type: "mark", row, marks: { title: line.text.trim() } } }
  const typed = line.text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== "")
  const removed = (row.tags ?? []).filter((tag) => tag !== STAR_TAG && !typed.includes(tag))
  return { state: closed, action: { type: "mark", row, marks: { tag: typed, no_tag: removed } } }
}

/** A line that is being typed: its text, the cursor position, and the text that was last cut from it. */
export type TypedLine = { text: string; cursor: number; cut: string }

export function typedLineOf(text: string): TypedLine {
  return { text, cursor: text.length, cut: "" }
}

/** The line after a key press, with readline's key bindings. Undefined if the key does not edit. */
export function editLine(line: TypedLine, { name, text = "" }: Key): TypedLine | undefined {
  if (name === "text" || name === "paste") return insertText(line, safeTyped(text))
  const { cursor, text: current } = line
  switch (name) {
    case "left":
    case "ctrl-b":
      return { ...line, cursor: cursor - lengthBefore(line) }
    case "right":
    case "ctrl-f":
      return { ...line, cursor: cursor + lengthAfter(line) }
    case "ctrl-a":
      return { ...line, cursor: 0 }
    case "ctrl-e":
      return { ...line, cursor: current.length }
    case "alt-b":
    case "ctrl-left":
    case "alt-left":
      return { ...line, cursor: wordStart(line) }
    case "alt-f":
    case "ctrl-right":
    case "alt-right":
      return { ...line, cursor: wordEnd(line) }
    case "backspace":
      return deleteText(line, cursor - lengthBefore(line), cursor)
    case "delete":
    case "ctrl-d":
      return deleteText(line, cursor, cursor + lengthAfter(line))
    case "ctrl-u":
      return cutText(line, 0, cursor)
    case "ctrl-w":
      return cutText(line, /\S*\s*$/.exec(current.slice(0, cursor))!.index, cursor)
    case "alt-backspace":
      return cutText(line, wordStart(line), cursor)
    case "alt-d":
      return cutText(line, cursor, wordEnd(line))
    case "ctrl-y":
      return insertText(line, line.cut)
    default:
      return undefined
  }
}

function insertText(line: TypedLine, text: string): TypedLine {
  const { cursor, text: current } = line
  return { ...line, text: current.slice(0, cursor) + text + current.slice(cursor), cursor: cursor + text.length }
}

/** Makes typed or pasted text safe for one line. White space at an end becomes one space. */
function safeTyped(text: string): string {
  const [, spaceBefore = "", spaceAfter = ""] = /^(\s*).*?(\s*)$/s.exec(text)!
  const clean = safeLine(text)
  return clean === "" ? (spaceBefore === "" ? "" : " ") : `${spaceBefore && " "}${clean}${spaceAfter && " "}`
}

function deleteText(line: TypedLine, from: number, to: number): TypedLine {
  return { ...line, text: line.text.slice(0, from) + line.text.slice(to), cursor: from }
}

function cutText(line: TypedLine, from: number, to: number): TypedLine {
  const cut = line.text.slice(from, to)
  return { ...deleteText(line, from, to), cut: cut === "" ? line.cut : cut }
}

function lengthBefore({ text, cursor }: TypedLine): number {
  return graphemesOf(text.slice(0, cursor)).at(-1)?.length ?? 0
}

function lengthAfter({ text, cursor }: TypedLine): number {
  return graphemesOf(text.slice(cursor))[0]?.length ?? 0
}

function wordStart({ text, cursor }: TypedLine): number {
  return /[\p{L}\p{N}_]*[^\p{L}\p{N}_]*$/u.exec(text.slice(0, cursor))!.index
}

function wordEnd({ text, cursor }: TypedLine): number {
  return cursor + /^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u.exec(text.slice(cursor))![0].length
}

/** The actions, each with its letter. The letter is typed with Alt; in the menu also alone. */
export const ACTIONS = [
  { name: "hand_over", letter: "h", description: "hand over to an agent" },
  { name: "view", letter: "v", description: "view in the browser" },
  { name: "copy", letter: "c", description: "copy its resume command" },
  { name: "star", letter: "s", description: "give or remove a star" },
  { name: "tag", letter: "g", description: "edit its tags" },
  { name: "title", letter: "n", description: "give it a title" },
  { name: "agent", letter: "a", description: "agent: all, or one" },
  { name: "project", letter: "p", description: "project, folder, or all" },
  { name: "time", letter: "t", description: "time: all, 1, 7, 30 days" },
] as const

type ActionName = (typeof ACTIONS)[number]["name"]

/** The keys that are not actions, as the menu shows them. */
export const OTHER_KEYS: readonly (readonly [keys: string, description: string])[] = [
  ["Enter", "resume in its own agent"],
  ["Tab", "read"],
  ["Up Down", "move; also ^P ^N ^K ^J, PgUp PgDn, Home End"],
  ["^A ^E ^U ^W", "edit the words, as in a shell"],
  ["Esc", "clear the words, then leave"],
  ["^C  ^Z", "leave, suspend"],
]
