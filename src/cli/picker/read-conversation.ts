import { spawn } from "node:child_process"
import { once } from "node:events"
import type { ReadStream, WriteStream } from "node:tty"
import { parseCompleteRef } from "../../core/ref.ts"
import { screenOf } from "../../render/screen.ts"
import { terminalOf } from "../../render/terminal.ts"
import type { Dex } from "../../tools/context.ts"
import { conversationLines } from "../print/conversation-lines.ts"
import { pagerCommand, withLessCharset } from "../terminal/pager.ts"
import type { PickerRow } from "./state.ts"

type Terminals = { input: ReadStream; output: WriteStream & { fd: number } }

/** Shows a conversation in the user's pager, as `dex show` prints it. Returns when the person leaves the pager. */
export async function readConversation(
  dex: Dex,
  { ref, title, message }: PickerRow,
  words: string,
  terminals: Terminals,
): Promise<void> {
  const lines = await linesOfConversation(dex, ref, words, terminals.output)
  const [program = "", ...args] = pagerFor(
    title,
    lineOfMessage(lines, message),
    terminalOf(terminals.output, process.env).color,
  )
  const env = { ...process.env, ...withLessCharset(process.env) }
  const child = spawn(program || "cat", args, { stdio: ["pipe", terminals.output.fd, terminals.output.fd], env })
  child.stdin!.on("error", () => {}) // the person left before the end
  child.stdin!.end(`${lines.join("\n").trimEnd()}\n`)
  const hasStarted = await Promise.race([
    once(child, "close").then(() => true),
    once(child, "error").then(() => false), // the program does not exist
  ]).catch(() => false)
  if (hasStarted && /(^|\/)less$/.test(program)) return
  if (!hasStarted) terminals.output.write(`${lines.join("\n").trimEnd()}\n`)
  await waitForKey(terminals)
}

/** Waits for a key. Some pagers exit at the end of the text, and the list would cover what they printed. */
function waitForKey({ input, output }: Terminals): Promise<void> {
  output.write("\nPress any key to go back to the list.")
  return new Promise((resolve) => {
    input.setRawMode(true)
    input.once("data", () => {
      input.setRawMode(false)
      input.pause()
      resolve()
    })
    input.resume()
  })
}

async function linesOfConversation(dex: Dex, name: string, words: string, output: WriteStream): Promise<string[]> {
  const ref = parseCompleteRef(name)
  const row = ref && (await (await dex.store()).conversation(ref))
  if (!row) return ["This conversation no longer exists."]
  const screen = screenOf(terminalOf(output, process.env), process.env)
  const lines = await conversationLines(dex, row, { screen, words: words.split(/\s+/).filter(Boolean) })
  return [...lines()]
}

/** The line on which a message begins, counted from 1. */
function lineOfMessage(lines: readonly string[], message: number | undefined): number | undefined {
  const messageHead = new RegExp(` #${message}(?: \\W|$)`)
  const text = lines.join("\n").split("\n")
  const index =
    message === undefined ? -1 : text.findIndex((line) => messageHead.test(line.replaceAll(/\x1b\[[\d;]*m/g, "")))
  return index === -1 ? undefined : index + 1
}

/**
 * The pager's command line. The options keep less from exiting at once if everything fits on the screen, because the list would
 * then cover it.
 */
function pagerFor(title: string, line: number | undefined, color: boolean): string[] {
  const [program = "", ...args] = pagerCommand(process.env, color, title) ?? []
  if (!/(^|\/)less$/.test(program)) return [program, ...args]
  return [program, ...args, "-+F", "-+X", ...(line === undefined ? [] : [`+${line}`])]
}
