import { expect, test } from "vitest"
import { readKeys } from "../../../src/cli/picker/keys.ts"
import {
  afterKey,
  type PickerAction,
  type PickerRow,
  type PickerState,
  selectedRow,
  startingState,
  withRows,
  withSources,
} from "../../../src/cli/picker/state.ts"

const PAGE = 5

function rowsNamed(...names: string[]): PickerRow[] {
  return names.map((name) => ({
    ref: `claude_code:${name}`,
    title: name,
    time: "2026-11-03T10:00:00.000Z",
    source: "claude_code",
    project: "/code/api",
  }))
}

const TEN = rowsNamed("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")

function startWith(rows = TEN, text = ""): PickerState {
  const state = withSources(startingState(text, ["codex", "pi"]), ["claude_code", "codex"]).state
  return withRows(state, { rows, hasMore: false, isNew: true }, PAGE)
}

/** The state after these bytes, and the actions that the keys asked for. */
function after(
  keys: string,
  state = startWith(),
): { state: PickerState; wishes: PickerAction[]; at: string | undefined } {
  const wishes: PickerAction[] = []
  let now = state
  const read = readKeys(keys)
  const typed = read.rest === "\x1b" ? [...read.keys, { name: "escape" }] : read.keys
  for (const key of typed) {
    const step = afterKey(now, key, PAGE)
    now = step.state
    if (step.action) wishes.push(step.action)
  }
  return { state: now, wishes, at: selectedRow(now)?.title }
}

test("arrows and the keys of fzf move, and stop at the ends", () => {
  expect(after("\x1b[B\x1b[B").at).toBe("c")
  expect(after("\x0e\x0a\x10").at).toBe("b")
  expect(after("\x0a\x0a\x0b").at).toBe("b")
  expect(after("\x1b[A").at).toBe("a")
  expect(after("\x1b[F").at).toBe("j")
  expect(after("\x1b[F\x1b[B").at).toBe("j")
  expect(after("\x1b[F\x1b[H").at).toBe("a")
})

test("a page is what the screen shows: first to its end, then the next one", () => {
  expect(after("\x1b[6~").at).toBe("e")
  expect(after("\x1b[6~\x1b[6~")).toMatchObject({ at: "j", state: { top: 5 } })
  expect(after("\x1b[F\x1b[5~")).toMatchObject({ at: "f" })
  expect(after("\x1b[F\x1b[5~\x1b[5~")).toMatchObject({ at: "a", state: { top: 0 } })
})

test("the list scrolls only as far as necessary", () => {
  expect(after("\x0a".repeat(4)).state.top).toBe(0)
  expect(after("\x0a".repeat(5)).state.top).toBe(1)
  expect(after(`${"\x0a".repeat(7)}${"\x0b".repeat(4)}`).state.top).toBe(3)
})

test("typing searches, and moving the cursor does not", () => {
  expect(after("t")).toMatchObject({ wishes: [{ type: "find" }], state: { line: { text: "t" }, isFinding: true } })
  expect(after("t\x01\x05\x1b[D").wishes).toEqual([{ type: "find" }])
  expect(after("\x7f").wishes).toEqual([])
})

test("Escape clears the words, then leaves; ^D leaves only if the line is empty; ^C always leaves", () => {
  const typed = after("t\x1b")
  expect(typed).toMatchObject({ wishes: [{ type: "find" }, { type: "find" }], state: { line: { text: "" } } })
  expect(after("\x1b", typed.state).wishes).toEqual([{ type: "leave" }])
  expect(after("\x04").wishes).toEqual([{ type: "leave" }])
  expect(after("to\x01\x04").state.line.text).toBe("o")
  expect(after("to\x03").wishes.at(-1)).toEqual({ type: "leave" })
  expect(after("\x1a").wishes).toEqual([{ type: "suspend" }])
})

test("Enter resumes and Tab reads the selected row, and without rows they do nothing", () => {
  expect(after("\x0a\r").wishes).toEqual([{ type: "resume", row: TEN[1] }])
  expect(after("\x0a\t").wishes).toEqual([{ type: "read", row: TEN[1] }])
  expect(after("\r\t\x1bc\x1bh", startWith([]))).toMatchObject({ wishes: [], at: undefined })
  expect(after("\x1bc").wishes).toEqual([{ type: "copy", row: TEN[0] }])
})

test("filters cycle: each agent, this project, 1, 7 and 30 days, and back to all", () => {
  const filters = (keys: string) => after(keys).state.filter
  expect(filters("\x1ba")).toEqual({ scope: "all", source: "claude_code" })
  expect(filters("\x1ba\x1ba")).toEqual({ scope: "all", source: "codex" })
  expect(filters("\x1ba\x1ba\x1ba")).toEqual({ scope: "all" })
  expect(filters("\x1bp\x1bt")).toEqual({ scope: "project", days: 1 })
  expect(filters("\x1bp\x1bp\x1bt\x1bt\x1bt")).toEqual({ scope: "folder", days: 30 })
  expect(filters("\x1bp\x1bp\x1bp")).toEqual({ scope: "all" })
  expect(filters("\x1bt\x1bt\x1bt\x1bt")).toEqual({ scope: "all" })
  expect(after("\x1bt").wishes).toEqual([{ type: "find" }])
})

test("a letter in the menu does the same as Alt and the letter, for keyboards without Alt", () => {
  expect(after("?t").state).toMatchObject({ filter: { days: 1 } })
  expect(after("x?").state).toMatchObject({ line: { text: "x?" } })
  expect(after("x\x0f").state).toMatchObject({ menu: { type: "actions" } })
  expect(after("\x1bOPc").wishes).toEqual([{ type: "copy", row: TEN[0] }])
  const left = after("?x").state
  expect([left.menu, left.line.text]).toEqual([undefined, ""])
  expect(after("?\x1b").wishes).toEqual([])
})

test("handing over asks for the agent, and can be cancelled", () => {
  expect(after("\x1bv").wishes).toEqual([{ type: "view", row: TEN[0] }])
  expect(after("\x1bh\r").wishes).toEqual([{ type: "hand_over", row: TEN[0], to: "codex" }])
  expect(after("\x1bh\x1b[B\x1b[B\r").wishes).toEqual([{ type: "hand_over", row: TEN[0], to: "pi" }])
  expect(after("?h2").wishes).toEqual([{ type: "hand_over", row: TEN[0], to: "pi" }])
  expect(after("\x1bh9")).toMatchObject({ wishes: [], state: { line: { text: "" } } })
  expect(after("\x1bh\x1b").wishes).toEqual([])
})

test("if no agent is installed, handing over says so and stays", () => {
  const { state, wishes } = after("\x1bh\r", { ...after("").state, openable: [] })
  expect(wishes).toEqual([{ type: "resume", row: TEN[0] }])
  expect(after("\x1bh", { ...state, openable: [] }).state.notice).toMatch(/No other agent is installed/)
})

test("a conversation that cannot be resumed can be handed over or read", () => {
  const state: PickerState = { ...startWith(), menu: { type: "problem", text: "Its folder is gone." } }
  expect(after("h\r", state).wishes).toEqual([{ type: "hand_over", row: TEN[0], to: "codex" }])
  expect(after("\t", state).wishes).toEqual([{ type: "read", row: TEN[0] }])
  expect(after("t", state)).toMatchObject({ wishes: [], state: { filter: { scope: "all" } } })
})

test("when a sync adds rows, the selected one stays selected, in the same place on the screen", () => {
  const state = after("\x0a".repeat(6)).state
  expect([state.selected, state.top]).toEqual([6, 2])
  const more = [...rowsNamed("new1", "new2", "new3"), ...TEN]
  const refreshed = withRows(state, { rows: more, hasMore: false, isNew: false }, PAGE)
  expect([selectedRow(refreshed)?.title, refreshed.selected, refreshed.top]).toEqual(["g", 9, 5])
})

test("while an empty list fills, its first row stays selected until a key is pressed", () => {
  const fill = (state: PickerState, ...names: string[]) =>
    withRows(state, { rows: rowsNamed(...names), hasMore: false, isNew: false }, PAGE)
  const first = fill({ ...startingState("", []), isUntouched: true }, "b", "c")
  expect(selectedRow(fill(first, "a", "b", "c"))?.title).toBe("a")
  const moved = after("\x1b[B", first).state
  expect(selectedRow(fill(moved, "a", "b", "c"))?.title).toBe("c")
})

test("if the selected row disappears, the cursor stays in place; other words start at the top", () => {
  const state = after("\x0a".repeat(6)).state
  const fewer = withRows(state, { rows: TEN.slice(0, 4), hasMore: false, isNew: false }, PAGE)
  expect([selectedRow(fewer)?.title, fewer.top]).toEqual(["d", 0])
  expect(selectedRow(withRows(state, { rows: TEN, hasMore: false, isNew: true }, PAGE))?.title).toBe("a")
  expect(selectedRow(withRows(state, { rows: [], hasMore: false, isNew: false }, PAGE))).toBeUndefined()
})

test("the key for the next agent works later if it is pressed before the agents are known", () => {
  const { state, wishes } = after("\x1ba", startingState("", []))
  expect(wishes).toEqual([])
  expect(state.filter).toEqual({ scope: "all" })
  const known = withSources(state, ["claude_code", "codex"])
  expect(known).toMatchObject({ state: { filter: { source: "claude_code" } }, action: { type: "find" } })
  expect(withSources(known.state, ["claude_code"]).action).toBeUndefined()
})

test("Alt-S toggles the star of the selected row", () => {
  const starred = TEN.map((row, i) => (i === 1 ? { ...row, tags: ["auth", "starred"] } : row))
  expect(after("\x1bs", startWith(starred)).wishes).toEqual([
    { type: "mark", row: starred[0], marks: { tag: ["starred"] } },
  ])
  expect(after("\x1b[B\x1bs", startWith(starred)).wishes).toEqual([
    { type: "mark", row: starred[1], marks: { no_tag: ["starred"] } },
  ])
  expect(after("\x1bs", startWith([])).wishes).toEqual([])
})

test("Alt-G edits the tags as one line, without the star", () => {
  const tagged = TEN.map((row, i) => (i === 0 ? { ...row, tags: ["auth", "starred", "old"] } : row))
  const typed = after("\x1bg", startWith(tagged)).state.menu
  expect(typed).toMatchObject({ type: "tag", line: { text: "auth old" } })
  const { state, wishes } = after("\x1bg\x17New, x\r", startWith(tagged))
  expect(wishes).toEqual([{ type: "mark", row: tagged[0], marks: { tag: ["auth", "new", "x"], no_tag: ["old"] } }])
  expect(state.menu).toBeUndefined()
})

test("Alt-N gives a title; unchanged or after Esc, nothing happens, and the keys of the list are letters", () => {
  expect(after("\x1bn\x15Own t\r").wishes).toEqual([{ type: "mark", row: TEN[0], marks: { title: "Own t" } }])
  expect(after("\x1bn\r").wishes).toEqual([])
  const { state, wishes } = after("\x1bnxyz\x1b")
  expect([state.menu, wishes, state.line.text]).toEqual([undefined, [], ""])
})
