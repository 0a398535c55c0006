import { createDex } from "../app/dex.ts"
import { keepsListings, saveListing } from "../app/listing.ts"
import { runTool } from "../app/run.ts"
import { VERSION } from "../app/version.ts"
import type { SyncProgress } from "../ingest/sync.ts"
import { toJson } from "../render/json.ts"
import { safe, terminalOf, wrap } from "../render/terminal.ts"
import type { Dex } from "../tools/context.ts"
import type { Command, Face } from "./command.ts"
import { asTyped } from "./print/as-typed.ts"
import type { Printed } from "./print/printer.ts"
import { printedError } from "./print/words.ts"

/** Runs a declared command: what it asks, what it prints, and how it ends. Returns the exit code. */
export async function runCommand({ tool, face }: Command, given: unknown, json: boolean): Promise<number> {
  const input = json || !face.before ? given : await face.before(given)
  const instead = await face.instead?.(input, json)
  if (instead !== undefined) return instead
  const stop = new AbortController()
  const progress = progressOf(face, json)
  const dex = createDex({
    env: process.env,
    cwd: process.cwd(),
    version: VERSION,
    signal: stop.signal,
    onProgress: progress.show,
    onWait: (text) => void process.stderr.write(`${safe(text)}\n`),
  })
  const release = onInterrupt(stop, face)
  try {
    const answer = await runTool(tool, dex, input)
    progress.stop()
    let { output } = answer
    const confirmed = !json && (await face.confirm?.(output, input, dex)) === true
    if (confirmed) output = (await runTool(tool, dex, { ...(input as object), yes: true })).output
    if (json) process.stdout.write(`${toJson(face.streams ? { event: "done", ...(output as object) } : output)}\n`)
    else {
      const print = await face.view()
      const context = { terminal: stdout(), home: dex.machine.home, numbered: keepsListings() }
      show(await print(output, context, input), dex)
      if (confirmed && face.after) {
        output = await face.after(input, dex)
        process.stdout.write("\n")
        show(await print(output, context, input), dex)
      }
    }
    const unread = face.asksAll && (await (await import("../tools/unread.ts")).unreadNote(dex))
    const notes = unread ? [...answer.notes, unread] : answer.notes
    for (const note of notes) process.stderr.write(printedError(note, terminalOf(process.stderr, process.env)))
    await answer.record()
    return tool.found === undefined || tool.found(output) ? 0 : 1
  } finally {
    progress.stop()
    release()
    dex.close()
  }
}

const stdout = () => terminalOf(process.stdout, process.env)

function show({ lines, notes, listing }: Printed, dex: Dex): void {
  // Before the rows are out: `| head` may end us in the middle of them.
  if (listing) saveListing(dex.home.dir, listing)
  if (lines.length > 0) process.stdout.write(`${lines.join("\n").trimEnd()}\n`)
  if (notes?.length) {
    const terminal = terminalOf(process.stderr, process.env)
    const wrapped = notes.flatMap((note) => wrap(asTyped(safe(note), terminal), terminal.columns))
    process.stderr.write(`${lines.length > 0 ? "\n" : ""}${wrapped.join("\n")}\n`)
  }
}

type ProgressView = { show(progress: SyncProgress): void; stop(): void }

/** What shows progress; loaded when there is some. */
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
      import("./progress.ts").then(async ({ progressView }) => {
        view = await progressView(process.stderr, terminalOf(process.stderr, process.env))
      })
    },
    stop: () => {
      if (view && view !== "loading") view.stop()
    },
  }
}

/** The first Ctrl-C ends after what is at hand; the second one ends at once. */
function onInterrupt(stop: AbortController, { stops }: Face<unknown, unknown>): () => void {
  if (!stops) return () => {}
  const handler = () => {
    if (stop.signal.aborted) process.exit(130)
    process.stderr.write(`\nStopping. ${stops.keeps}Ctrl-C again stops at once.\n`)
    stop.abort()
  }
  const signals = ["SIGINT", ...(stops.signals ?? [])] as const
  for (const signal of signals) process.on(signal, handler)
  return () => {
    for (const signal of signals) process.off(signal, handler)
  }
}
