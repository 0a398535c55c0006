import { createDex } from "../app/dex.ts"
import { canUseRowNumbers, saveListing } from "../app/listing.ts"
import { runTool } from "../app/run.ts"
import { VERSION } from "../app/version.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import { toJson } from "../render/json.ts"
import { safe, terminalOf } from "../render/terminal.ts"
import type { Dex } from "../tools/context.ts"
import { readArguments } from "./args.ts"
import { type Command, type Face, isUnconfirmed } from "./command.ts"
import { chosenForm, formsOf, oldNameNote } from "./forms.ts"
import type { PrintContext, PrintedOutput, ReadPage } from "./print/words.ts"
import { formatError, say } from "./print/words.ts"

/** Runs a command with the words that were typed after its name; `commands` has its forms. Returns the exit code. */
export async function runWords(command: Command, typed: string[], commands: readonly Command[]): Promise<number> {
  const note = oldNameNote(command.tool)
  if (note !== undefined && process.stderr.isTTY) say(note)
  const { command: chosen, words } = chosenForm(command.tool.name, typed, commands) ?? { command, words: typed }
  const { input, json, help, web, ...options } = readArguments(chosen.tool, words)
  if (web && !help) return (await import("./view.ts")).viewOutput(chosen.tool.name, input)
  if (!help) return runCommand(chosen, input, json, { ...options, hasForms: note === undefined })
  const { toolHelp } = await import("./help.ts")
  process.stdout.write(toolHelp(chosen.tool, stdout(), formsOf(chosen.tool.name, commands)))
  return 0
}

/** Runs a command's tool, with the questions before it and the output after it. Returns the exit code. */
export async function runCommand(
  { tool, face }: Command,
  typedInput: unknown,
  json: boolean,
  { pager = true, hasLimit = false, hasForms = true }: { pager?: boolean; hasLimit?: boolean; hasForms?: boolean } = {},
): Promise<number> {
  const input = json || !face.before ? typedInput : await face.before(typedInput)
  const exitCode = await face.runInstead?.(input, json)
  if (exitCode !== undefined) return exitCode
  const controller = new AbortController()
  const progress = progressOf(face, json)
  const dex = createDex({
    env: process.env,
    cwd: process.cwd(),
    version: VERSION,
    signal: controller.signal,
    hasForms,
    onProgress: progress.show,
    onWait: (text) => void process.stderr.write(`${safe(text)}\n`),
  })
  const release = handleInterrupts(controller, face)
  let code: number
  let page: ReadPage | undefined
  let problem: string | undefined
  try {
    const answer = await runTool(tool, dex, input)
    progress.stop()
    let { output } = answer
    const confirmation = json ? undefined : await face.confirm?.(output, input, dex)
    const isConfirmed = confirmation !== undefined && confirmation !== false
    if (isConfirmed) {
      const choices = confirmation === true ? {} : (confirmation as object)
      output = (await runTool(tool, dex, { ...(input as object), ...choices, yes: true })).output
    }
    if (json) process.stdout.write(`${toJson(face.streams ? { event: "done", ...(output as object) } : output)}\n`)
    else {
      const context = {
        terminal: stdout(),
        home: dex.machine.home,
        numbered: canUseRowNumbers(),
        rows: process.stdout.rows && !hasLimit ? process.stdout.rows : undefined,
        hasForms,
      }
      const result = await printOutput({ tool, face }, output, context, input, dex)
      if ("problem" in result) problem = result.problem
      else page = result.page
      if (isConfirmed && face.after) {
        output = await face.after(input, dex)
        process.stdout.write("\n")
        show(await (await face.view())(output, context, input))
      }
    }
    const hasResults = tool.found === undefined || tool.found(output)
    const unreadNote =
      face.needsAllHistory && (await (await import("../tools/unread.ts")).historyNote(dex, { found: hasResults }))
    const tip = !json && stdout().interactive ? await face.tip?.(output, dex) : undefined
    const notes = [...answer.notes, ...(unreadNote ? [unreadNote] : []), ...(tip === undefined ? [] : [tip])]
    for (const note of notes) process.stderr.write(formatError(note, terminalOf(process.stderr, process.env)))
    await answer.record()
    if (problem !== undefined) process.stderr.write(formatError(problem, terminalOf(process.stderr, process.env)))
    code = problem !== undefined ? 2 : !hasResults ? 1 : isUnconfirmed(output) ? 2 : 0
    await face.background?.(dex)
  } finally {
    progress.stop()
    release()
    dex.close()
  }
  // The pager opens after everything is closed, because a person may read for an hour.
  if (page) {
    await (await import("./terminal/pager.ts")).showInPager(page.lines, pager, page.title)
    showNotes(page.notes, true)
  }
  return code
}

const stdout = () => terminalOf(process.stdout, process.env)

/** Prints a tool's output. Returns the page if it should go through a pager instead, or the problem if the tool failed. */
async function printOutput(
  { tool, face }: Command,
  output: unknown,
  context: PrintContext,
  input: unknown,
  dex: Dex,
): Promise<{ page?: ReadPage } | { problem: string }> {
  const isPaged = tool.cli.paged === true && context.terminal.interactive
  if (isPaged && face.reader) return { page: await (await face.reader())(output, context, input, dex) }
  const printed = await (await face.view())(output, context, input)
  // Saved before the rows are printed, because `| head` may end this process in the middle of them.
  if (printed.listing) saveListing(dex.home.dir, printed.listing, printed.words)
  if (isPaged) return { page: { ...printed, lines: () => printed.lines } }
  show(printed)
  return printed.problem === undefined ? {} : { problem: printed.problem }
}

function show({ lines, notes }: PrintedOutput): void {
  if (lines.length > 0) process.stdout.write(`${lines.join("\n").trimEnd()}\n`)
  showNotes(notes, lines.length > 0)
}

function showNotes(notes: string[] | undefined, isBelowOutput: boolean): void {
  if (!notes?.length) return
  if (isBelowOutput) process.stderr.write("\n")
  say(...notes)
}

type ProgressView = { show(progress: SyncProgress): void; stop(): void }

/** Shows the progress on stderr; with --json prints events, but only if the command streams them. Loads the bar when needed. */
function progressOf({ streams }: Face<unknown, unknown>, json: boolean): ProgressView {
  if (json) {
    const show = (progress: SyncProgress) =>
      void process.stdout.write(`${toJson({ event: "progress", ...progress })}\n`)
    return { show: streams ? show : () => {}, stop: () => {} }
  }
  let view: ProgressView | "loading" | undefined
  return {
    show: (progress) => {
      if (view === "loading") return
      if (view) return view.show(progress)
      view = "loading"
      import("./progress.ts").then(({ progressView }) => {
        view = progressView(process.stderr, terminalOf(process.stderr, process.env))
      })
    },
    stop: () => {
      if (view && view !== "loading") view.stop()
    },
  }
}

/** Handles Ctrl-C: the first one asks the tool to stop, the second one ends the process. Returns a function that undoes this. */
function handleInterrupts(controller: AbortController, { onInterrupt }: Face<unknown, unknown>): () => void {
  if (!onInterrupt) return () => {}
  const handler = () => {
    if (controller.signal.aborted) process.exit(130)
    process.stderr.write(`\nStopping. ${onInterrupt.keptNote}Press Ctrl-C again to stop at once.\n`)
    controller.abort()
  }
  const signals = ["SIGINT", ...(onInterrupt.signals ?? [])] as const
  for (const signal of signals) process.on(signal, handler)
  return () => {
    for (const signal of signals) process.off(signal, handler)
  }
}
