import { NO_MODEL } from "../../answers/ask.run.ts"
import type { startChat, Turn } from "../../answers/chat.run.ts"
import type { Step } from "../../answers/loop.ts"
import { clip, paint, safe, safeLine, type Terminal, terminalOf, widthOf } from "../../render/terminal.ts"
import { confidenceLine, notesOf, printAsk, sourceLines } from "../print/ask.ts"
import { say } from "../print/words.ts"

export type StartedChat = Awaited<ReturnType<typeof startChat>>
type AnswerOptions = {
  signal: AbortSignal
  verbose: boolean
  /** True if the notes may say that no model is set up. */
  reportsMissingModel: boolean
}

export const HOW_TO_SET_UP =
  "To set up a model: dex config set llm.provider http://localhost:11434/v1 (Ollama, LM Studio, vLLM or any other server of that kind) and dex config set llm.model <its name>; dex config set llm.api_key for OpenAI; or dex config set llm.provider agent for a coding agent that you have."

/** Asks a question and prints the answer as it arrives: sentences on stdout, steps and notes on stderr. */
export async function printAnswer(
  { chat, stored }: StartedChat,
  question: string,
  options: AnswerOptions,
): Promise<Turn> {
  const terminal = terminalOf(process.stdout, process.env)
  const printer = createTextPrinter((text) => process.stdout.write(text), terminal.columns)
  let isShown = false
  stored.question(question)
  const turn = await chat
    .ask(question, {
      signal: options.signal,
      onSentence: (sentence) => {
        isShown = true
        printer.say(sentence)
      },
      onStep: options.verbose
        ? (step: Step) => {
            printer.end()
            showStep(step)
          }
        : undefined,
    })
    .finally(printer.end)
  stored.answer(turn)
  showSourcesAndNotes(turn, isShown, options.reportsMissingModel, terminal)
  return turn
}

function showSourcesAndNotes(turn: Turn, isShown: boolean, reportsMissingModel: boolean, terminal: Terminal): void {
  const lines = isShown
    ? ["", ...sourceLines(turn.sources, terminal)]
    : printAsk(turn, { terminal, home: "", numbered: false }).lines
  if (lines.length > 0) process.stdout.write(`${lines.join("\n")}\n`)
  const answerWithoutSources = turn.sources.length > 0 || turn.stopped ? [] : [turn.answer]
  const notes = [
    ...answerWithoutSources,
    ...(isShown && turn.sources.length > 0 ? [confidenceLine(turn)] : []),
    ...notesOf(reportsMissingModel ? turn : withoutMissingModelNote(turn)),
  ]
  if (turn.forgot)
    notes.push(
      `This chat is long: its first ${turn.forgot === 1 ? "question is" : `${turn.forgot} questions are`} no longer sent to the model. /clear starts over.`,
    )
  if (lines.length > 0 && notes.length > 0) process.stderr.write("\n")
  if (notes.length > 0) say(...notes)
}

function withoutMissingModelNote(turn: Turn): Turn {
  const { note, ...rest } = turn
  const otherNotes = note?.replace(NO_MODEL, "").trim()
  return otherNotes ? { ...rest, note: otherNotes } : rest
}

function showStep({ call, outcome }: Step): void {
  const terminal = terminalOf(process.stderr, process.env)
  const line = clip(`  ${safeLine(call)} → ${safeLine(outcome)}`, terminal.columns)
  process.stderr.write(`${paint(terminal, "dim", line)}\n`)
}

/** Matches the beginning of code, list items and headings, which are printed on a new line. */
const STARTS_NEW_LINE = /^(?:```|[-*•]\s|\d{1,3}[.)]\s|#{1,6}\s)/

/** Prints sentences that arrive one by one as continuous, wrapped text. */
function createTextPrinter(write: (text: string) => void, columns: number) {
  let column = 0
  const end = () => {
    if (column > 0) write("\n")
    column = 0
  }
  return {
    end,
    say(sentence: string) {
      const clean = safe(sentence)
      if (STARTS_NEW_LINE.test(clean)) end()
      if (clean.startsWith("```")) return void write(`${clean}\n`)
      for (const word of clean.split(/\s+/)) {
        const width = widthOf(word)
        if (column > 0 && column + 1 + width > columns) end()
        write(column > 0 ? ` ${word}` : word)
        column += width + (column > 0 ? 1 : 0)
      }
    },
  }
}

/** The first Ctrl-C stops the answer and keeps what has arrived; the second one ends the process at once. */
export async function untilInterrupted(answer: (signal: AbortSignal) => Promise<Turn>): Promise<Turn> {
  const controller = new AbortController()
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(130)
    controller.abort()
  }
  process.on("SIGINT", interrupt)
  try {
    return await answer(controller.signal)
  } finally {
    process.off("SIGINT", interrupt)
  }
}
