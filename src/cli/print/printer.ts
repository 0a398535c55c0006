import type { Terminal } from "../../render/terminal.ts"

export type PrintContext = { terminal: Terminal; home: string }
export type Printed = {
  lines: string[]
  /** For stderr: they are not results. */
  notes?: string[]
  /** The refs that row numbers stand for from now on. */
  listing?: string[]
}
