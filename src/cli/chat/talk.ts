import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { createInterface, type Interface } from "node:readline"
import type { ChatInput, Turn } from "../../answers/chat.run.ts"
import { codeOf, isDexError, messageOf } from "../../core/error.ts"
import { padEnd, paint, safe, safeLine, terminalOf } from "../../render/terminal.ts"
import { many, shortPath } from "../../render/words.ts"
import type { Dex } from "../../tools/context.ts"
import { describeCollections } from "../../tools/docs/collections.ts"
import { isCurrentProject } from "../../tools/resolve.ts"
import { historyNote } from "../../tools/unread.ts"
import { sourceLines } from "../print/ask.ts"
import { say } from "../print/words.ts"
import { HOW_TO_SET_UP, printAnswer, type StartedChat, untilInterrupted } from "./answer.ts"

/** Answers questions on a terminal until the person leaves. */
export async function runChat(dex: Dex, started: StartedChat, input: ChatInput): Promise<number> {
  const terminal = terminalOf(process.stdout, process.env)
  const reader = createInterface({
    input: process.stdin,
    output: process.stdout,
    completer: (line: string) => [line.startsWith("/") ? COMMANDS.filter((name) => name.startsWith(line)) : [], line],
  })
  const lines = createLineReader(reader)
  const youPrompt = paint(terminal, "bold", "You: ")
  const state: Talk = {
    dex,
    started,
    input,
    verbose: input.verbose === true,
    turns: [],
    ask: (question) => lines.next(question),
  }
  try {
    say(
      "Ask questions about your history and documents. /help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves.",
    )
    if (!started.model) say(`No model is set up, so the answers are quotes. ${HOW_TO_SET_UP}`)
    const note = await historyNote(dex, { found: false })
    if (note !== undefined) say(note)
    let initialQuestion = input.query
    for (;;) {
      const line = (initialQuestion ?? (await lines.next(youPrompt)))?.trim()
      initialQuestion = undefined
      if (line === undefined) return 0
      if (line === "") continue
      if (isCommand(line)) {
        if ((await runChatCommand(line, state)) === "leave") return 0
        continue
      }
      process.stdout.write("\n")
      const turn = await lines.withoutRawMode(() => answerOrReport(started, line, state.verbose))
      if (turn) state.turns.push({ question: line, turn })
      process.stdout.write("\n")
      lines.setLeavesOnInterrupt(turn?.stopped === true)
    }
  } finally {
    reader.close()
    process.stdout.write("\n")
    const folder = started.stored.folder()
    const problem = started.stored.problem()
    if (folder !== undefined) say(`This chat is saved in ${shortPath(folder, dex.machine.home)}.`)
    if (problem !== undefined) say(`This chat could not be saved: ${problem}`)
  }
}

/** An error in one answer does not end the chat. */
async function answerOrReport(started: StartedChat, question: string, verbose: boolean): Promise<Turn | undefined> {
  try {
    return await untilInterrupted((signal) =>
      printAnswer(started, question, { signal, verbose, reportsMissingModel: false }),
    )
  } catch (error) {
    if (!isDexError(error)) throw error
    say(error.message)
    return undefined
  }
}

/** Reads the lines that the person types. `next` returns undefined when they leave. */
function createLineReader(reader: Interface) {
  const typedLines: string[] = []
  let resolveNext: ((line: string | undefined) => void) | undefined
  let isClosed = false
  let leavesOnInterrupt = false
  const deliver = (line: string | undefined) => {
    const resolveLine = resolveNext
    resolveNext = undefined
    resolveLine?.(line)
  }
  reader.on("line", (line) => {
    leavesOnInterrupt = false
    if (resolveNext) deliver(line)
    else typedLines.push(line)
  })
  reader.on("close", () => {
    isClosed = true
    deliver(undefined)
  })
  reader.on("SIGINT", () => {
    if (reader.line !== "") reader.write(null, { ctrl: true, name: "u" })
    else if (leavesOnInterrupt) reader.close()
    else {
      leavesOnInterrupt = true
      process.stdout.write("\n")
      say("Press Ctrl-C again or Ctrl-D to leave.")
      reader.prompt()
    }
  })
  return {
    next(prompt: string): Promise<string | undefined> {
      if (isClosed) return Promise.resolve(undefined)
      const line = typedLines.shift()
      if (line !== undefined) return Promise.resolve(line)
      return new Promise((resolve) => {
        resolveNext = resolve
        reader.setPrompt(prompt)
        reader.prompt()
      })
    },
    /** Turns raw mode off while `work` runs, so that Ctrl-C becomes a signal. */
    async withoutRawMode<T>(work: () => Promise<T>): Promise<T> {
      reader.pause()
      process.stdin.setRawMode(false)
      try {
        return await work()
      } finally {
        process.stdin.setRawMode(true)
        reader.resume()
      }
    },
    setLeavesOnInterrupt(value: boolean) {
      leavesOnInterrupt = value
    },
  }
}

export type Talk = {
  dex: Dex
  started: StartedChat
  input: ChatInput
  verbose: boolean
  turns: { question: string; turn: Turn }[]
  ask(question: string): Promise<string | undefined>
}

type ChatCommand = { summary: string; run(talk: Talk, words: string): void | "leave" | Promise<void> }

const leave: ChatCommand = { summary: "Leave. So does Ctrl-D", run: () => "leave" }

const commands: Record<string, ChatCommand> = {
  "/help": { summary: "Show this", run: showHelp },
  "/collections": { summary: "Show which documents are searched", run: showCollections },
  "/use-case": { summary: "Show or change what the answers are for", run: changeUseCase },
  "/clear": { summary: "Start over: forget the earlier questions", run: clearChat },
  "/verbose": { summary: "Show every search and every read, or stop showing them", run: toggleVerbose },
  "/sources": { summary: "Show everything that was cited in this chat", run: showSources },
  "/save": { summary: "Write this chat to a Markdown file: /save notes.md", run: saveChat },
  "/quit": leave,
  "/exit": leave,
}

export const COMMANDS = Object.keys(commands)

/** True for a chat command. A path is not one: `/etc/hosts has which port?` is a question. */
export function isCommand(line: string): boolean {
  return /^\/[a-z-]*(?:\s|$)/i.test(line)
}

async function runChatCommand(line: string, talk: Talk): Promise<"leave" | undefined> {
  const [, name, words] = /^(\S+)\s*(.*)$/s.exec(line)!
  const command = commands[name!.toLowerCase()]
  if (!command) say(`There is no command ${name}. /help lists the commands.`)
  return (await command?.run(talk, words!)) ?? undefined
}

function showHelp(): void {
  const width = Math.max(...COMMANDS.map((name) => name.length)) + 2
  const rows = Object.entries(commands).map(([name, { summary }]) => `  ${padEnd(name, width)}${summary}`)
  process.stdout.write(`${rows.join("\n")}\n`)
}

async function showCollections({ dex, input }: Talk): Promise<void> {
  const collections = await describeCollections(dex)
  const searchedCollections = collections.filter(({ name, project }) =>
    input.collections
      ? input.collections.includes(name)
      : project === undefined
        ? !input.no_global
        : isCurrentProject(dex, project),
  )
  for (const { name, documents, sections } of searchedCollections)
    process.stdout.write(`  ${safeLine(name)}: ${many(documents, "document")}, ${many(sections, "section")}\n`)
  if (searchedCollections.length === 0) say("No documents are searched. `dex docs add <folder>` adds some.")
  if (!input.collections) say("Past conversations are searched too.")
}

async function changeUseCase({ started: { chat }, ask }: Talk, words: string): Promise<void> {
  const current = chat.useCase()
  if (words === "") say(current === undefined ? "No use case is set." : `The use case is: ${current}`)
  const useCase = words || (await ask("New use case (Enter keeps it): "))?.trim()
  if (useCase) chat.setUseCase(useCase)
}

function clearChat({ started: { chat, stored } }: Talk): void {
  chat.clear()
  stored.cleared()
  say("Starting over. The questions and answers so far stay saved.")
}

function toggleVerbose(talk: Talk): void {
  talk.verbose = !talk.verbose
  say(talk.verbose ? "Every step is shown from now on." : "Steps are no longer shown.")
}

function showSources({ turns }: Talk): void {
  const sources = new Map(turns.flatMap(({ turn }) => turn.sources.map((source) => [source.n, source] as const)))
  if (sources.size === 0) {
    say("Nothing has been cited yet.")
    return
  }
  const sorted = [...sources.values()].sort((a, b) => a.n - b.n)
  process.stdout.write(`${sourceLines(sorted, terminalOf(process.stdout, process.env)).join("\n")}\n`)
}

function saveChat({ dex, started, turns }: Talk, words: string): void {
  if (turns.length === 0) {
    say("There is nothing to save yet.")
    return
  }
  const file = resolve(dex.cwd, words || `dex-chat-${started.stored.id() ?? "answers"}.md`)
  try {
    writeFileSync(file, markdownOf(turns), { flag: "wx" })
    say(`Written to ${file}.`)
  } catch (error) {
    const exists = codeOf(error) === "EEXIST"
    say(
      exists
        ? `${file} exists already and was not changed. Give another name: /save other.md`
        : `${file} could not be written: ${messageOf(error)}`,
    )
  }
}

function markdownOf(turns: Talk["turns"]): string {
  return turns
    .map(({ question, turn }) =>
      [
        `## ${safeLine(question)}`,
        "",
        safe(turn.stopped && turn.sources.length === 0 ? "(stopped)" : turn.answer),
        "",
        ...turn.sources.map(({ n, ref, title }) => `- [${n}] \`${safeLine(ref)}\` ${safeLine(title)}`),
        ...(turn.note ? ["", safeLine(turn.note)] : []),
        "",
      ].join("\n"),
    )
    .join("\n")
}
