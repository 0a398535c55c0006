import type { ReadStream, WriteStream } from "node:tty"
import { agents } from "../../agents/registry.ts"
import { isOnPath } from "../../integrations/agents.ts"
import { glyphsOf } from "../../render/screen.ts"
import type { Terminal } from "../../render/terminal.ts"
import type { Dex } from "../../tools/context.ts"
import { commandLine } from "../../tools/view.ts"
import { asTyped } from "../print/words.ts"
import { type Key, lastKeys, readKeys } from "./keys.ts"
import type { FoundRows } from "./newest-rows.ts"
import { createRowFinder } from "./row-finder.ts"
import type { Preview } from "./screen.ts"
import { drawScreen, type PickerLook, previewColumns, rowsPerPage } from "./screen.ts"
import { type LookUpProcess, startLookUp } from "./start-look-up.ts"
import {
  afterKey,
  conversationOfRow,
  type PickerAction,
  type PickerFilter,
  type PickerRow,
  type PickerState,
  type PickerStep,
  type RowMarks,
  scrollToSelected,
  selectedRow,
  startingState,
  withRows,
  withSources,
} from "./state.ts"
import { openTerminal } from "./terminal-mode.ts"

type PickerOptions = {
  dex: Dex
  input: ReadStream
  output: WriteStream & { fd: number }
  terminal: Pick<Terminal, "color" | "program">
  /** The words in the search line at the start. */
  text: string
  /** The newest conversations. */
  first: FoundRows
  scope: PickerFilter["scope"]
  /** Called when the person chooses another scope. */
  onScope(scope: PickerFilter["scope"]): void
  /** True if Enter only returns the selected row, instead of resuming the conversation. */
  returnsRow: boolean
}

export type PickedAction =
  | { type: "left" | "nothing_found" }
  | { type: "chosen" | "resume" | "view"; row: PickerRow }
  | { type: "hand_over"; row: PickerRow; to: string }

/** Shows the conversations until the person chooses one or leaves. */
export async function pick(options: PickerOptions): Promise<PickedAction> {
  let close = () => {}
  try {
    return await new Promise<PickedAction>((resolve, reject) => {
      close = startPicker(options, resolve, reject)
    })
  } finally {
    close()
  }
}

/** Takes over the screen and starts the background processes. Returns a function that restores the screen and ends them. */
function startPicker(options: PickerOptions, end: (picked: PickedAction) => void, fail: (error: unknown) => void) {
  const { dex, input, output, text } = options
  const lookUp = startLookUp()
  const quickLookUp = startLookUp()
  const terminal = openTerminal(input, output, fail)
  const previews = createPreviews(lookUp, () => draw())
  let state = startingState(text, [], options.scope)

  const draw = () => {
    const look = lookOf(options)
    state = scrollToSelected(state, rowsPerPage(state, look))
    const row = previewColumns(look) > 0 ? selectedRow(state) : undefined
    terminal.draw(drawScreen(state, row && previews.get(row, look), look))
    if (row) previews.request(row, look)
  }
  const change = (next: Partial<PickerState>) => {
    state = { ...state, ...next }
    draw()
  }
  const finder = createRowFinder(
    { quickLookUp, rankingLookUp: lookUp },
    {
      onFound: (found, { isFirst, isLast }) => {
        // As long as the person has not moved the selection, the first row stays selected.
        const isNew = isFirst || (state.isFinding && state.selected === 0)
        state = withRows(state, { ...found, isNew }, rowsPerPage(state, lookOf(options)))
        change({ isFinding: !isLast, ...(found.note !== "" && { note: found.note }) })
      },
      // The rows of the previous words must not look like results of the new ones.
      onProblem: (note) => change({ rows: [], isFinding: false, note }),
    },
  )
  const applyStep = ({ state: next, action }: PickerStep) => {
    state = next
    if (action) perform(action)
  }
  const requestSourcesAndNote = () => {
    lookUp.ask({ type: "sources" }, (answer) => {
      if (!("sources" in answer)) return
      applyStep(withSources(state, answer.sources))
      draw()
    })
    lookUp.ask({ type: "note" }, (answer) => {
      if ("note" in answer) change({ note: state.note || answer.note })
    })
  }
  const keys = listenToKeys(input, (pressedKeys) => {
    for (const key of pressedKeys) applyStep(afterKey(state, key, rowsPerPage(state, lookOf(options))))
    draw()
  })

  const perform = (action: PickerAction): void => {
    if (action.type === "leave") end({ type: "left" })
    else if (action.type === "find") {
      state = { ...state, note: "" }
      options.onScope(state.filter.scope)
      finder.find(state.line.text, state.filter)
    } else if (action.type === "redraw") terminal.forget()
    else if (action.type === "suspend") suspend()
    else if (action.type === "hand_over" || action.type === "view") end(action)
    else if (action.type === "copy") copy(action.row)
    else if (action.type === "mark") mark(action.row, action.marks)
    else if (action.type === "read") void showConversation(action.row).catch(fail)
    else if (options.returnsRow) end({ type: "chosen", row: action.row })
    else resume(action.row)
  }
  const suspend = () => {
    // A command substitution is in its shell's process group, so stopping it would stop the shell.
    if (options.returnsRow || process.platform === "win32") return
    terminal.leave()
    process.kill(0, "SIGTSTP")
    terminal.enter()
  }
  const copy = ({ ref }: PickerRow) => {
    const command = asTyped(commandLine("resume", [ref]), options.terminal)
    terminal.send(`\x1b]52;c;${Buffer.from(command).toString("base64")}\x07`)
    change({ notice: `Copied, if the terminal allows it: ${command}` })
  }
  const mark = (row: PickerRow, marks: RowMarks) =>
    lookUp.ask({ type: "mark", ref: conversationOfRow(row), marks }, (answer) => {
      if ("problem" in answer) return change({ notice: answer.problem })
      if (!("marked" in answer)) return
      previews.clear()
      const { title, tags } = answer.marked
      const isMarked = (one: PickerRow) => conversationOfRow(one) === conversationOfRow(row)
      change({ rows: state.rows.map((one) => (isMarked(one) ? { ...one, title, tags } : one)) })
    })
  const showConversation = async (row: PickerRow) => {
    const { readConversation } = await import("./read-conversation.ts")
    keys.pause()
    terminal.leave()
    await readConversation(dex, row, state.line.text, options)
    terminal.enter()
    keys.resume()
    draw()
  }
  const resume = (row: PickerRow) =>
    lookUp.ask({ type: "resumable", ref: row.ref }, (answer) => {
      if ("why_not" in answer && answer.why_not === "") return end({ type: "resume", row })
      const why = "why_not" in answer ? answer.why_not : "problem" in answer ? answer.problem : ""
      change({ menu: { type: "problem", text: why } })
    })
  const onResize = () => {
    terminal.forget()
    draw()
  }
  const onHangUp = () => end({ type: "left" })

  terminal.enter()
  const { rows, hasMore } = options.first
  state = { ...state, rows, hasMore, isUntouched: rows.length === 0, syncing: "reading" }
  draw()
  state = { ...state, openable: openableAgents(dex) }
  keys.resume()
  input.on("end", onHangUp)
  output.on("resize", onResize)
  if (text === "") finder.refresh(text, state.filter)
  else finder.find(text, state.filter)
  requestSourcesAndNote()
  const onMore = () => {
    previews.clear()
    requestSourcesAndNote()
    finder.refresh(state.line.text, state.filter)
  }
  let isClosed = false
  let stopSync = () => {}
  const startSync = async () => {
    const { syncWhilePicking } = await import("./sync-while-picking.ts")
    if (isClosed) return
    const sync = syncWhilePicking({
      onProgress: (syncing) => change({ syncing }),
      onMore,
      onEnd: (note, changed) => {
        change({ note: note || state.note })
        if (changed) onMore()
        else if (state.rows.length === 0 && state.line.text === "" && options.first.rows.length === 0)
          end({ type: "nothing_found" })
      },
    })
    stopSync = sync.stop
  }
  startSync().catch(fail)
  return () => {
    isClosed = true
    stopSync()
    finder.stop()
    quickLookUp.close()
    lookUp.close()
    keys.pause()
    input.off("end", onHangUp)
    output.off("resize", onResize)
    terminal.close()
  }
}

/** Caches previews. A preview is empty until the requested one arrives. */
function createPreviews(lookUp: LookUpProcess, onNew: () => void) {
  const cache = new Map<string, Preview>()
  let requestedKey = ""
  const keyOf = (row: PickerRow, look: PickerLook) => `${row.ref}#${row.message ?? ""} ${previewColumns(look)}`
  return {
    get: (row: PickerRow, look: PickerLook): Preview =>
      cache.get(keyOf(row, look)) ?? { ref: row.ref, title: row.title, facts: [], messages: [] },
    /** Starting a process takes time, so draw first. */
    request: (row: PickerRow, look: PickerLook): void => {
      const key = keyOf(row, look)
      if (cache.has(key) || requestedKey === key) return
      requestedKey = key
      lookUp.ask({ type: "preview", row, columns: previewColumns(look), color: look.color }, (answer) => {
        if (!("preview" in answer) || answer.preview === null) return
        cache.set(key, answer.preview)
        onNew()
      })
    },
    clear: () => {
      cache.clear()
      requestedKey = ""
    },
  }
}

function lookOf({ output, terminal, dex, returnsRow }: PickerOptions): PickerLook {
  return {
    columns: output.columns || 80,
    rows: output.rows || 24,
    color: terminal.color,
    program: terminal.program,
    unicode: glyphsOf(process.env).rule === "─",
    now: dex.now(),
    enter: returnsRow ? "choose" : "resume",
  }
}

/** The installed agents that a conversation can be handed over to. */
function openableAgents({ machine }: Dex): string[] {
  const installed = agents.filter(({ open }) => open !== undefined && isOnPath(open[0]!, machine))
  return installed.map(({ source }) => source)
}

/** How long to wait for the rest of a key. After that, a lone Escape is the Escape key. */
const ESCAPE_MS = 100

function listenToKeys(input: ReadStream, onKeys: (keys: Key[]) => void): { pause(): void; resume(): void } {
  let rest = ""
  let restTimer: NodeJS.Timeout | undefined
  let pendingEnd: NodeJS.Immediate | undefined
  const stopWaiting = () => {
    clearTimeout(restTimer)
    clearImmediate(pendingEnd)
  }
  const handleKeys = (input: { keys: Key[]; rest: string }) => {
    rest = input.rest
    onKeys(input.keys)
  }
  const onData = (data: string) => {
    stopWaiting()
    handleKeys(readKeys(rest + data))
    // Waits until input that arrived while dex was busy has been read.
    const end = () => (pendingEnd = setImmediate(() => handleKeys(lastKeys(rest))))
    if (rest !== "") restTimer = setTimeout(end, ESCAPE_MS)
  }
  input.setEncoding("utf8")
  return {
    pause: () => {
      stopWaiting()
      rest = ""
      input.off("data", onData)
      input.pause()
    },
    resume: () => {
      input.on("data", onData)
      input.resume()
    },
  }
}
