import type { Printed } from "./print/printer.ts"

export type ToOpen = { command: string[]; folder?: string; problem?: string }

/** On a terminal the agent opens; in a pipe, or where it is not installed, the command is printed. */
export async function openOrPrint({ command, folder, problem }: ToOpen, printed: Printed): Promise<Printed> {
  if (problem !== undefined || !process.stdout.isTTY) return printed
  const { spawnSync } = await import("node:child_process")
  const [program, ...args] = command
  const opened = spawnSync(program!, args, { stdio: "inherit", ...(folder !== undefined && { cwd: folder }) })
  if (!opened.error) return { lines: [] }
  return {
    ...printed,
    notes: [
      `${program} could not be started (${opened.error.message}). You can use what is printed above where it is installed.`,
    ],
  }
}
