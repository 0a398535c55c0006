import type { Terminal } from "../../render/terminal.ts"

export type PrintContext = {
  terminal: Terminal
  home: string
  /** Rows are kept, so that their numbers can be typed here. */
  numbered: boolean
  /** The screen's, unless it was said how much to show. */
  rows?: number
  /** Commands are named as forms of `dex show`, not by their old names. */
  hasForms?: boolean
}
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
