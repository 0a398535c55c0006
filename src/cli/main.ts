import { createDex } from "../app/dex.ts"
import { saveListing } from "../app/listing.ts"
import { runTool } from "../app/run.ts"
import { dexHome } from "../config/home.ts"
import { DexError, isDexError } from "../core/error.ts"
import type { Tool } from "../core/tool.ts"
import type { SyncProgress } from "../ingest/sync.ts"
import { toJson } from "../render/json.ts"
import { safe, terminalOf, wrap } from "../render/terminal.ts"
import type { Dex } from "../tools/context.ts"
import { readArguments } from "./args.ts"
import { commands } from "./commands.ts"
import type { PrintContext, Printed } from "./print/printer.ts"
import { errorText } from "./print/words.ts"
import { VERSION } from "./version.ts"
import { isLong } from "./watch.ts"

/** Runs one command line. Results go to stdout, everything else to stderr. Returns the exit code; never throws. */
export async function main(argv: string[]): Promise<number> {
  try {
    return await dispatch(argv)
  } catch (error) {
    if (isDexError(error)) process.stderr.write(errorText(error.message, terminalOf(process.stderr, process.env)))
    else
      process.stderr.write(
        `dex: an error that should not happen. Please report it with what you did.\n${safe((error as Error)?.stack ?? String(error))}\n`,
      )
    return 2
  }
}

async function dispatch([name, ...rest]: string[]): Promise<number> {
  if (name === undefined) return (await import("./home.ts")).showHome()
  if (name === "-V" || name === "version") return write(`dex ${VERSION}\n`)
  const terminal = terminalOf(process.stdout, process.env)
  if (name === "--help" || name === "-h" || (name === "help" && rest.length === 0))
    return write((await import("./help.ts")).generalHelp(commands, terminal))
  const asksHelp = rest.includes("--help") || rest.includes("-h")
  if (name === "hook" || (name === "completions" && asksHelp)) {
    const { pageHelp, HOOK, COMPLETIONS } = await import("./help.ts")
    return write(pageHelp(name === "hook" ? HOOK : COMPLETIONS, terminal))
  }
  if (name === "completions") return write((await import("./completions.ts")).completions(rest[0], commands))
  if (name === "mcp") return (await import("./mcp.ts")).mcpCommand(rest)
  if (name === "serve") return (await import("./serve.ts")).serveCommand(rest)
  if (name === "config" && rest.length === 2 && rest[0] === "set" && rest[1]!.endsWith(".api_key"))
    return (await import("./ask-key.ts")).askKey(rest[1]!.slice(0, -".api_key".length))
  if (name === "help") return dispatch([rest[0]!, "--help"])
  const tool = commands.find((candidate) => candidate.name === name || candidate.cli.aliases?.includes(name))
  if (!tool) throw unknownCommand(name)
  const { input, json, help } = readArguments(tool, rest)
  if (help) return write((await import("./help.ts")).toolHelp(tool, terminal))
  const asked = !json && (tool.name === "ask" || isOneQuestion(tool, input)) ? await withUseCase(input) : input
  if (tool.name === "install" && !json) {
    const { withHooksChoice } = await import("./confirm-wiring.ts")
    return runCommand(tool, await withHooksChoice(input as never, dexHome(process.env).dir), json)
  }
  if (tool.name === "chat" && !json) return (await import("./chat.ts")).chatCommand(asked as never)
  if (tool.name === "watch" && isLong(asked as never)) return (await import("./watch-run.ts")).watchCommand(json)
  return runCommand(tool, asked, json)
}

function isOneQuestion(tool: Tool<never>, input: unknown): boolean {
  const { query, interactive, opencode } = input as { query?: string; interactive?: boolean; opencode?: boolean }
  return tool.name === "chat" && query !== undefined && !interactive && !opencode
}

/** An answer is better when it is known what it is for; nobody has to say. */
async function withUseCase(input: unknown): Promise<unknown> {
  if ((input as { use_case?: string }).use_case !== undefined || !process.stdin.isTTY || !process.stdout.isTTY)
    return input
  const { text, isCancel } = await import("@clack/prompts")
  const said = await text({ message: "What is the answer for? (Enter to leave it open)", output: process.stderr })
  if (isCancel(said)) throw new DexError("cancelled", "Nothing was asked.")
  return said ? { ...(input as object), use_case: said } : input
}

async function runCommand(tool: Tool<never>, input: unknown, json: boolean): Promise<number> {
  const stop = new AbortController()
  const view = viewOf(tool.name, json)
  const dex = createDex({
    env: process.env,
    cwd: process.cwd(),
    version: VERSION,
    signal: stop.signal,
    onProgress: view.show,
    onWait: (text) => void process.stderr.write(`${safe(text)}\n`),
  })
  const release = onInterrupt(stop, tool.name)
  try {
    const answer = await runTool(tool, dex, input)
    view.stop()
    const confirmed = await confirmIfNeeded(tool, input, answer.output, dex, json)
    if (json) write(`${toJson(tool.name === "sync" ? { event: "done", ...(confirmed as object) } : confirmed)}\n`)
    else await print(tool.name, confirmed, input, dex)
    for (const note of answer.notes) process.stderr.write(errorText(note, terminalOf(process.stderr, process.env)))
    await answer.record()
    return tool.found === undefined || tool.found(confirmed as never) ? 0 : 1
  } finally {
    view.stop()
    release()
    dex.close()
  }
}

/** What cannot be undone, and what changes other programs' files, is asked about on a terminal. */
async function confirmIfNeeded(
  tool: Tool<never>,
  input: unknown,
  output: unknown,
  dex: Dex,
  json: boolean,
): Promise<unknown> {
  const runConfirmed = async () => (await runTool(tool, dex, { ...(input as object), yes: true })).output
  const waits = (output as { asked?: boolean }).asked === true
  if (!json && (tool.name === "install" || tool.name === "uninstall")) {
    const { confirmWiring } = await import("./confirm-wiring.ts")
    return (await confirmWiring(tool.name, input as never, output as never, dex)) ? runConfirmed() : output
  }
  if (!json && tool.name === "watch" && waits) {
    const { confirmService } = await import("./confirm-service.ts")
    return (await confirmService(output as never)) ? runConfirmed() : output
  }
  const asks = tool.name === "forget" && waits
  if (!asks || json || !process.stdin.isTTY || !process.stdout.isTTY) return output
  const { confirm, isCancel } = await import("@clack/prompts")
  const { forgotten } = output as { forgotten: string[] }
  process.stderr.write(`${forgotten.map((ref) => `  ${ref}`).join("\n")}\n`)
  const yes = await confirm({
    message: `Forget ${forgotten.length === 1 ? "this conversation" : `these ${forgotten.length} conversations`} for good?`,
    initialValue: false,
    output: process.stderr,
  })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was forgotten.")
  return runConfirmed()
}

type View = { show(progress: SyncProgress): void; stop(): void }

/** What shows progress; loaded when there is some. */
function viewOf(name: string, json: boolean): View {
  if (json) {
    const show = (progress: SyncProgress) => void write(`${toJson({ event: "progress", ...progress })}\n`)
    return { show: name === "sync" ? show : () => {}, stop: () => {} }
  }
  let view: View | "loading" | undefined
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

/** The first Ctrl-C ends after the conversation at hand; what was read is kept. The second one ends at once. */
function onInterrupt(stop: AbortController, name: string): () => void {
  if (!["sync", "eval", "map", "digest", "rules"].includes(name)) return () => {}
  const handler = () => {
    if (stop.signal.aborted) process.exit(130)
    const kept = name === "sync" ? "What was read is kept; " : name === "eval" ? "" : "What was answered is kept; "
    process.stderr.write(`\nStopping. ${kept}Ctrl-C again stops at once.\n`)
    stop.abort()
  }
  // A measure has a folder to remove, whoever ends it.
  const signals = name === "eval" ? (["SIGINT", "SIGTERM", "SIGHUP"] as const) : (["SIGINT"] as const)
  for (const signal of signals) process.on(signal, handler)
  return () => {
    for (const signal of signals) process.off(signal, handler)
  }
}

async function print(name: string, output: unknown, input: unknown, dex: Dex): Promise<void> {
  const terminal = terminalOf(process.stdout, process.env)
  const printed = await printedBy(name, output, input, { terminal, home: dex.machine.home })
  if (printed.lines.length > 0) write(`${printed.lines.join("\n").trimEnd()}\n`)
  if (printed.notes?.length) {
    const width = terminalOf(process.stderr, process.env).columns
    const notes = printed.notes.flatMap((note) => wrap(safe(note), width))
    process.stderr.write(`${printed.lines.length > 0 ? "\n" : ""}${notes.join("\n")}\n`)
  }
  if (printed.listing && terminal.interactive) saveListing(dex.home.dir, printed.listing)
}

async function printedBy(name: string, output: unknown, input: unknown, context: PrintContext): Promise<Printed> {
  if (name === "search") return (await import("./print/search.ts")).printSearch(output as never, context)
  if (name === "list") return (await import("./print/list.ts")).printList(output as never, context)
  if (name === "show")
    return (await import("./print/show.ts")).printShow(output as never, context, (input as { format: string }).format)
  if (name === "read") return (await import("./print/read.ts")).printRead(output as never, context)
  if (name === "scan") return (await import("./print/lines.ts")).printScan(output as never, context)
  if (name === "timeline") return (await import("./print/lines.ts")).printTimeline(output as never, context)
  if (name === "ask") return (await import("./print/ask.ts")).printAsk(output as never, context)
  if (name === "map" || name === "rules") return (await import("./print/map.ts")).printMap(output as never, context)
  if (name === "digest") return (await import("./print/digest.ts")).printDigest(output as never, context)
  if (name === "decisions")
    return (await import("./print/decisions.ts")).printDecisions(output as never, context, input as never)
  if (name === "fix") return (await import("./print/fix.ts")).printFix(output as never, context)
  if (name === "suggest") return (await import("./print/suggest.ts")).printSuggest(output as never, context)
  if (name === "tests") return (await import("./print/tests.ts")).printTests(output as never, context)
  if (name === "docs") return (await import("./print/docs.ts")).printDocs(output as never, context)
  if (name === "guide") return (await import("./print/guide.ts")).printGuide(output as never, context)
  if (name === "traces") return (await import("./print/trace.ts")).printTraces(output as never, context)
  if (name === "trace") return (await import("./print/trace.ts")).printTrace(output as never, context)
  if (name === "handover") {
    const { printHandover, toOpen } = await import("./print/handover.ts")
    const [open, printed] = [toOpen(output as never, input as never), printHandover(output as never, input as never)]
    return open ? openOrPrint(open, printed) : printed
  }
  if (name === "backup") return (await import("./print/backup.ts")).printBackup(output as never, context)
  if (name === "restore") return (await import("./print/backup.ts")).printRestore(output as never, context)
  if (name === "import") return (await import("./print/backup.ts")).printImport(output as never, context)
  if (name === "eval") return (await import("./print/eval.ts")).printEval(output as never, context)
  if (name === "config")
    return (await import("./print/config.ts")).printConfig(
      output as never,
      context,
      (input as { words: string[] }).words,
    )
  if (name === "install") return (await import("./print/install.ts")).printInstall(output as never, context)
  if (name === "uninstall") return (await import("./print/install.ts")).printUninstall(output as never, context)
  if (name === "watch") return (await import("./print/watch.ts")).printWatch(output as never, context, input as never)
  const isAsked = name === "stats" && (output as { suggestions?: unknown }).suggestions !== undefined
  if (SUGGESTING.has(name) || isAsked) return printSuggesting(name, output, input, context)
  const keeping = await import("./print/keeping.ts")
  if (name === "resume") return openOrPrint(output as never, keeping.printResume(output as never))
  const printers: Record<string, (output: never, context: never) => Printed> = {
    stats: keeping.printStats,
    sync: keeping.printSync,
    sources: keeping.printSources,
    doctor: keeping.printDoctor,
    forget: keeping.printForget,
    private: keeping.printPrivate,
    mute: keeping.printMute,
    reindex: keeping.printReindex,
    gc: keeping.printGc,
  }
  return printers[name]!(output as never, context as never)
}

const SUGGESTING = new Set(["suggestions", "feedback", "subscribe", "subscriptions", "unsubscribe"])

async function printSuggesting(name: string, output: unknown, input: unknown, context: PrintContext): Promise<Printed> {
  const print = await import("./print/suggestions.ts")
  if (name === "suggestions") return print.printSuggestions(output as never, context, input as never)
  if (name === "feedback") return print.printFeedback(output as never, context, input as never)
  if (name === "subscribe") return print.printSubscribed(output as never, context)
  if (name === "subscriptions") return print.printSubscriptions(output as never, context)
  if (name === "unsubscribe") return print.printUnsubscribed(output as never)
  return print.printSuggestionStats((output as { suggestions: never }).suggestions, context)
}

/** On a terminal the agent opens; in a pipe, or where it is not installed, the command is printed. */
async function openOrPrint(
  output: { command: string[]; folder?: string; problem?: string },
  printed: Printed,
): Promise<Printed> {
  if (output.problem !== undefined || !process.stdout.isTTY) return printed
  const { spawnSync } = await import("node:child_process")
  const [program, ...args] = output.command
  const opened = spawnSync(program!, args, {
    stdio: "inherit",
    ...(output.folder !== undefined && { cwd: output.folder }),
  })
  if (!opened.error) return { lines: [] }
  return {
    ...printed,
    notes: [
      `${program} could not be started (${opened.error.message}). What is printed above can be used where it is installed.`,
    ],
  }
}

function unknownCommand(name: string): DexError {
  const close = commands.find((tool) => tool.name.startsWith(name.slice(0, 3)))
  const hint = close ? ` Did you mean \`dex ${close.name}\`?` : ""
  return new DexError(
    "usage",
    `There is no command "${name}".${hint} \`dex --help\` lists them. To search: dex search "${name}"`,
  )
}

function write(text: string): number {
  process.stdout.write(text)
  return 0
}
