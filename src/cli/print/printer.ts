import type { Terminal } from "../../render/terminal.ts"

/** Turns a tool's output into lines for a person. `notes` go to stderr: they are not results. */
export type Printer = (output: never, context: PrintContext) => Printed
export type PrintContext = { terminal: Terminal; home: string }
export type Printed = {
  lines: string[]
  notes?: string[]
  /** The refs that row numbers stand for from now on. */
  listing?: string[]
}
