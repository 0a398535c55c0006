import type { Bin } from "./wiring.ts"

// How agents start dex. Elsewhere than on Windows: a file that the system can run, which a shell can run too. On Windows such
// a file is a .cmd, and whoever starts programs without a shell is refused it (EINVAL): so Node is started, with a script.

/** A program and its arguments, for whoever starts it without a shell. */
export type Start = { command: string; args: string[] }

export function serverStart({ dex, windows }: Bin): Start {
  return windows ? { command: windows.node, args: [dex, "serve"] } : { command: dex, args: ["serve"] }
}

/**
 * How an agent runs a hook on Windows: as a program with arguments, by whatever shell it finds, or by PowerShell. Elsewhere
 * all of them give a line to sh.
 */
export type HookStart = "program" | "any shell" | "powershell"

export function hookStart(
  program: string,
  words: string[],
  { windows }: Bin,
  how: HookStart,
): { command: string; args?: string[] } {
  if (windows === undefined) return { command: [shellWord(program), ...words].join(" ") }
  if (how === "program") return { command: windows.node, args: [program, ...words] }
  if (how === "powershell")
    return { command: ["&", ...[windows.node, program].map(powershellWord), ...words].join(" ") }
  // What cmd, PowerShell and Windows' older PowerShell all read alike: a bare word first, and one in quotes at most.
  return { command: ["cmd /d /c", cmdWord(batchFile(program)), ...words].join(" ") }
}

/** How dex is typed in an agent's shell: on Windows in Git's bash and in PowerShell alike, where it has no blanks. */
export function shellStart({ dex, windows }: Bin): string {
  if (windows === undefined) return shellWord(dex)
  const path = batchFile(dex).replaceAll("\\", "/")
  return /^[\w/.:@+-]+$/.test(path) ? path : inQuotes(path)
}

/** A path as a shell reads it. */
export function shellWord(path: string): string {
  return /^[\w/.@+-]+$/.test(path) ? path : inQuotes(path)
}

function inQuotes(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}

/** The one beside a script, which starts it. */
export function batchFile(script: string): string {
  return script.replace(/\.mjs$/, ".cmd")
}

function cmdWord(path: string): string {
  return /^[\w\\/.:@+-]+$/.test(path) ? path : `"${path}"`
}

/** PowerShell takes the printer's quotes for quotes too. */
function powershellWord(path: string): string {
  return `'${path.replace(/['‘’‚‛]/g, "$&$&")}'`
}
