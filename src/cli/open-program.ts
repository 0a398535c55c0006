import { isOnPath } from "../integrations/agents.ts"
import type { Printed } from "./print/printer.ts"

export type ToOpen = { command: string[]; folder?: string; note?: string; problem?: string }

/** On a terminal the agent opens; in a pipe, or where it cannot be started, `printed` is printed. */
export async function openOrPrint({ command, folder, note, problem }: ToOpen, printed: Printed): Promise<Printed> {
  if (!process.stdout.isTTY) return printed
  const [program = "", ...args] = command
  const why = problem ?? notInstalled(program)
  if (why !== undefined) return { ...printed, problem: why }
  if (note !== undefined) process.stderr.write(`${note}\n`)
  const { spawnSync } = await import("node:child_process")
  const opened = spawnSync(program, args, { stdio: "inherit", cwd: folder })
  return opened.error
    ? { ...printed, problem: `${program} could not be started (${opened.error.message}).` }
    : { lines: [] }
}

/** What to say where the program of an agent is missing. */
export function notInstalled(program: string): string | undefined {
  if (isOnPath(program, { env: process.env, platform: process.platform })) return undefined
  return `${program} is not installed here (not on PATH).`
}
