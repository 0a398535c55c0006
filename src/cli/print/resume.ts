import type { InputOf, OutputOf } from "../../core/tool.ts"
import { isOnPath } from "../../integrations/agents.ts"
import { safe, type Terminal, wrapLine } from "../../render/terminal.ts"
import type { handover } from "../../tools/handover/handover.ts"
import type { resume } from "../../tools/resume/resume.ts"
import { type PrintContext, type PrintedOutput, shellQuote } from "./words.ts"

export function printResume(output: OutputOf<typeof resume>): Promise<PrintedOutput> {
  return openOrPrint(output, commandLine(output))
}

function commandLine({ command, folder, note, problem }: OutputOf<typeof resume>): PrintedOutput {
  if (problem) return { lines: [], problem }
  const typedCommand = command.join(" ")
  return {
    lines: [folder ? `cd ${shellQuote(folder)} && ${typedCommand}` : typedCommand],
    notes: note ? [note] : undefined,
  }
}

type Output = OutputOf<typeof handover>
type Input = InputOf<typeof handover>

export async function printHandover(output: Output, { terminal }: PrintContext, input: Input): Promise<PrintedOutput> {
  const brief = printBrief(output, input, terminal)
  const { command, folder, note, problem } = output
  if (command === undefined || input.print) return brief
  return openOrPrint({ command: [...command, output.brief], folder, note, problem }, brief)
}

function printBrief(output: Output, input: Input, { interactive, columns }: Terminal): PrintedOutput {
  const notes = [`About ${output.estimated_tokens} tokens.`]
  if (output.problem !== undefined && !interactive) notes.push(output.problem)
  else if (input.to === undefined) notes.push(`Open an agent with it: dex handover ${output.id} --to codex`)
  const lines = safe(output.brief).split("\n")
  return { lines: interactive ? lines.flatMap((line) => wrapLine(line, columns)) : lines, notes }
}

type OpenRequest = { command: string[]; folder?: string; note?: string; problem?: string }

/** Opens the agent on a terminal. In a pipe, or if the agent cannot be started, returns `fallback`. */
async function openOrPrint(
  { command, folder, note, problem }: OpenRequest,
  fallback: PrintedOutput,
): Promise<PrintedOutput> {
  if (!process.stdout.isTTY) return fallback
  const [program = "", ...args] = command
  const reason = problem ?? notInstalledMessage(program)
  if (reason !== undefined) return { ...fallback, problem: reason }
  if (note !== undefined) process.stderr.write(`${note}\n`)
  const { spawnSync } = await import("node:child_process")
  const result = spawnSync(program, args, { stdio: "inherit", cwd: folder })
  return result.error
    ? { ...fallback, problem: `${program} could not be started (${result.error.message}).` }
    : { lines: [] }
}

/** The message for an agent whose program is missing; undefined if it is on PATH. */
export function notInstalledMessage(program: string): string | undefined {
  if (isOnPath(program, { env: process.env, platform: process.platform })) return undefined
  return `${program} is not installed here (not on PATH).`
}
