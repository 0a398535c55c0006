import { createInterface, type Interface } from "node:readline"
import type { ChatInput, Turn } from "../../answers/chat.run.ts"
import { isDexError } from "../../core/error.ts"
import { paint, terminalOf } from "../../render/terminal.ts"
import { shortPath } from "../../render/words.ts"
import type { Dex } from "../../tools/context.ts"
import { historyNote } from "../../tools/unread.ts"
import { say } from "../say.ts"
import { answerOn, HOW_TO_SET_UP, type Started, stoppable } from "./answer.ts"
import { COMMANDS, isCommand, runChatCommand, type Talk } from "./commands.ts"

/** Question after question, on a terminal, until the person leaves. */
export async function talk(dex: Dex, started: Started, input: ChatInput): Promise<number> {
  const terminal = terminalOf(process.stdout, process.env)
  const reader = createInterface({
    input: process.stdin,
    output: process.stdout,
    completer: (line: string) => [line.startsWith("/") ? COMMANDS.filter((name) => name.startsWith(line)) : [], line],
  })
  const lines = linesOf(reader)
  const you = paint(terminal, "bold", "You: ")
  const state: Talk = {
    dex,
    started,
    input,
    verbose: input.verbose === true,
    said: [],
    ask: (question) => lines.next(question),
  }
  try {
    say("Questions to your history and documents. /help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves.")
    if (!started.model) say(`No model is set up, so the answers are quotes. ${HOW_TO_SET_UP}`)
    const unread = await historyNote(dex, { found: false })
    if (unread !== undefined) say(unread)
    let next = input.query
    for (;;) {
      const line = (next ?? (await lines.next(you)))?.trim()
      next = undefined
      if (line === undefined) return 0
      if (line === "") continue
      if (isCommand(line)) {
        if ((await runChatCommand(line, state)) === "leave") return 0
        continue
      }
      process.stdout.write("\n")
      const turn = await lines.without(() => answered(started, line, state.verbose))
      if (turn) state.said.push({ question: line, turn })
      process.stdout.write("\n")
      lines.arm(turn?.stopped === true)
    }
  } finally {
    reader.close()
    process.stdout.write("\n")
    const folder = started.kept.folder()
    const problem = started.kept.problem()
    if (folder !== undefined) say(`This chat is kept in ${shortPath(folder, dex.machine.home)}.`)
    if (problem !== undefined) say(`This chat could not be kept: ${problem}`)
  }
}

/** What goes wrong with one question ends no chat. */
async function answered(started: Started, question: string, verbose: boolean): Promise<Turn | undefined> {
  try {
    return await stoppable((signal) => answerOn(started, question, { signal, verbose, saysNoModel: false }))
  } catch (error) {
    if (!isDexError(error)) throw error
    say(error.message)
    return undefined
  }
}

/** What the person types, line by line. Undefined when they leave. */
function linesOf(reader: Interface) {
  const typed: string[] = []
  let waiting: ((line: string | undefined) => void) | undefined
  let isClosed = false
  let isArmed = false
  const give = (line: string | undefined) => {
    const receive = waiting
    waiting = undefined
    receive?.(line)
  }
  reader.on("line", (line) => {
    isArmed = false
    if (waiting) give(line)
    else typed.push(line)
  })
  reader.on("close", () => {
    isClosed = true
    give(undefined)
  })
  reader.on("SIGINT", () => {
    if (reader.line !== "") reader.write(null, { ctrl: true, name: "u" })
    else if (isArmed) reader.close()
    else {
      isArmed = true
      process.stdout.write("\n")
      say("Ctrl-C again leaves, and so does Ctrl-D.")
      reader.prompt()
    }
  })
  return {
    next(prompt: string): Promise<string | undefined> {
      if (isClosed) return Promise.resolve(undefined)
      const line = typed.shift()
      if (line !== undefined) return Promise.resolve(line)
      return new Promise((resolve) => {
        waiting = resolve
        reader.setPrompt(prompt)
        reader.prompt()
      })
    },
    /** Gives the terminal back while something runs: Ctrl-C is a signal then. */
    async without<T>(work: () => Promise<T>): Promise<T> {
      reader.pause()
      process.stdin.setRawMode(false)
      try {
        return await work()
      } finally {
        process.stdin.setRawMode(true)
        reader.resume()
      }
    },
    /** Whether the next Ctrl-C leaves. */
    arm(is: boolean) {
      isArmed = is
    },
  }
}
