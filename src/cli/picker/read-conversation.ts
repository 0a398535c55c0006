import { spawn } from "node:child_process"
import { once } from "node:events"
import type { ReadStream, WriteStream } from "node:tty"
import { terminalOf } from "../../render/terminal.ts"
import type { Dex } from "../../tools/context.ts"
import { show } from "../../tools/show/show.ts"
import { printShow } from "../print/show.ts"
import type { PickerRow } from "./state.ts"

type Terminals = { input: ReadStream; output: WriteStream & { fd: number } }

/** Shows a conversation as `dex show` prints it, in the user's pager, until the person has left it. */
export async function readConversation(dex: Dex, { ref, message }: PickerRow, on: Terminals): Promise<void> {
  const lines = await linesOfConversation(dex, ref, on.output)
  const [program = "", ...args] = pagerFor(lineOfMessage(lines, message))
  const child = spawn(program, args, { stdio: ["pipe", on.output.fd, on.output.fd] })
  child.stdin!.on("error", () => {}) // it was left before the end
  child.stdin!.end(`${lines.join("\n").trimEnd()}\n`)
  const ended = await Promise.race([
    once(child, "close").then(() => true),
    once(child, "error").then(() => false), // there is no such program
  ]).catch(() => false)
  if (ended && program === "less") return
  if (!ended) on.output.write(`${lines.join("\n").trimEnd()}\n`)
  await anyKey(on)
}

/** Not every pager waits at its end: the list would cover what it printed. */
function anyKey({ input, output }: Terminals): Promise<void> {
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

async function linesOfConversation(dex: Dex, ref: string, output: WriteStream): Promise<string[]> {
  const input = { ids: [ref], format: "stripped" as const }
  const terminal = terminalOf(output, process.env)
  return printShow(await show.run(dex, input), { terminal, home: dex.machine.home, numbered: false }, input).lines
}

/** The line on which a message begins, from 1. */
function lineOfMessage(lines: readonly string[], message: number | undefined): number | undefined {
  const heads = new RegExp(`^\\W*#${message}\\b`)
  const text = lines.join("\n").split("\n")
  const at = message === undefined ? -1 : text.findIndex((line) => heads.test(line.replaceAll(/\x1b\[[\d;]*m/g, "")))
  return at === -1 ? undefined : at + 1
}

/** less is kept from leaving at once where all of it fits the screen: the list would cover it. */
function pagerFor(line: number | undefined): string[] {
  const chosen = (process.env.PAGER ?? "").trim()
  if (chosen !== "" && chosen !== "less") return ["/bin/sh", "-c", chosen]
  return ["less", "-R", "-+F", ...(line === undefined ? [] : [`+${line}`])]
}
