import type { InputOf, OutputOf } from "../../core/tool.ts"
import { isOnPath } from "../../integrations/agents.ts"
import { safe, type Terminal, wrapLine } from "../../render/terminal.ts"
import { shortPath } from "../../render/words.ts"
import type { handover } from "../../tools/handover/handover.ts"
import type { resume } from "../../tools/resume/resume.ts"
import { type PrintContext, type PrintedOutput, shellQuote } from "./words.ts"

type ResumeOutput = OutputOf<typeof resume>

export async function printResume(output: ResumeOutput, { home }: PrintContext): Promise<PrintedOutput> {
  const { copy, command, note } = output
  if (copy && !copy.done) {
    const notInstalled = process.stdout.isTTY ? notInstalledMessage(command[0] ?? "") : undefined
    const text = `${copyQuestion(output, home)} To copy it, run dex resume on a terminal, or add --yes.`
    return { lines: [], problem: notInstalled ?? text }
  }
  const notes = [note, copy && copiedNote(output, home)].filter((text) => text !== undefined)
  const noted = { ...output, note: notes.length > 0 ? notes.join(" ") : undefined }
  return openOrPrint(noted, commandLine(noted))
}

/** Names the copy that would be made. */
export function copyQuestion({ copy, folder = "" }: ResumeOutput, home: string): string {
  const { agent, files, commands } = copy!
  const target = files.length > 0 ? `to ${filesText(files, home)}` : `there with ${commandsText(commands)}`
  return `${agent} does not find this conversation from ${shortPath(folder, home)}. dex can copy it ${target}; the original stays as it is.`
}

function copiedNote({ copy, folder = "" }: ResumeOutput, home: string): string {
  const { files, commands } = copy!
  return files.length > 0
    ? `Copied to ${filesText(files, home)}.`
    : `Copied to ${shortPath(folder, home)} with ${commandsText(commands)}.`
}

function filesText(files: string[], home: string): string {
  return files.map((file) => shortPath(file, home)).join(" and ")
}

function commandsText(commands: string[][]): string {
  return commands.map((words) => words.slice(0, 2).join(" ")).join(" and ")
}

function commandLine({ command, folder, note, problem }: OutputOf<typeof resume>): PrintedOutput {
  if (problem) return { lines: [], problem }
  const typedCommand = command.map(shellQuote).join(" ")
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
