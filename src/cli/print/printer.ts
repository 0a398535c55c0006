import type { Terminal } from "../../render/terminal.ts"

/** `numbered`: rows are kept, so that their numbers can be typed here. `rows`: the screen's, unless it was said how much to show. */
export type PrintContext = { terminal: Terminal; home: string; numbered: boolean; rows?: number }
/** Lines to be read, made when they are asked for, from the beginning each time. */
export type ReadPage = { lines: () => Iterable<string>; notes?: string[] }
export type Printed = {
  lines: string[]
  /** For stderr: they are not results. */
  notes?: string[]
  /** Why it is not what was asked for: said last, and the command ends with 2. */
  problem?: string
  /** The refs that row numbers stand for from now on. */
  listing?: string[]
  /** The words that a search found, as they stand in its rows: they are marked in what is read of it. */
  words?: string[]
}
