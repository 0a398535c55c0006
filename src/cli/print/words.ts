import { addsUp, type TraceRow } from "../../core/trace.ts"
import { clip, safe, safeLine, type Terminal, terminalOf, widthOf, wrap } from "../../render/terminal.ts"
import { commandLine } from "../../tools/view.ts"

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

// How things are said on a terminal.

/** A ref is copied: it stands whole, on a line of its own where it must. What is said before it may be cut. */
export function whereTo(said: readonly string[], ref: string | undefined, room: number): string[] {
  const what = said.filter((one) => one !== "").join(" · ")
  if (!ref) return what === "" ? [] : [clip(what, room)]
  if (what === "") return [ref]
  const line = `${what} · ${ref}`
  return widthOf(line) <= room ? [line] : [clip(what, room), ref]
}

/** How the first of these is read: by its row, where rows are kept, and by its ref elsewhere. */
export function showFirst(refs: readonly string[], { numbered }: { numbered: boolean }): string {
  return numbered ? "dex show 1" : commandLine("show", [refs[0] ?? ""])
}

/** What went wrong, as it is told: on a terminal no word is torn, and whoever reads a pipe gets each line whole. */
export function printedError(message: string, terminal: Terminal): string {
  const lines = `dex: ${asTyped(safe(message), terminal)}`.split("\n")
  return `${(terminal.interactive ? lines.flatMap((line) => wrap(line, terminal.columns)) : lines).join("\n")}\n`
}

/** A name or a path as it is typed in a shell. */
export function shellQuote(path: string): string {
  return /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}

/** related code instead of related_code. */
export function kindName(kind: string): string {
  return kind.replaceAll("_", " ")
}

/**
 * What may follow `dex`. Written down once more, and compared with the commands by a test: who prints a line would otherwise load the
 * declarations of all of them.
 */
export const TYPED_AFTER_DEX =
  `search find list ls index show open get timeline scan read resume fix blame suggest tests decisions note notes
  suggestions feedback subscribe subscriptions unsubscribe docs traces trace stats usage cost costs guide sync sources doctor forget rm
  private mute reindex gc backup restore share export hub import eval config why ask chat map digest rules install uninstall handover
  watch pick view serve mcp hook completions help -h --help version -v -V --version --plain`.split(/\s+/)

/** dex's own words, with the commands in them as they are typed here: `npx dexctx show 1` where dex came by npx. */
export function asTyped(text: string, { program }: Pick<Terminal, "program">): string {
  if (program === undefined) return text
  const command = new RegExp(`^dex$|(?<![\\w./-])dex(?=\`| (?:${TYPED_AFTER_DEX.join("|")})(?![\\w-]))`, "g")
  return text.replace(command, program)
}

/** What is not a result: on stderr, with the commands in it as they are typed here, and no word torn. */
export function say(...texts: string[]): void {
  const terminal = terminalOf(process.stderr, process.env)
  const lines = texts.flatMap((text) => wrap(asTyped(safe(text), terminal), terminal.columns))
  process.stderr.write(`${lines.join("\n")}\n`)
}

type Sum = Pick<TraceRow, "score_final" | "terms">

/** A score as the sum it is: words 6.87 + pairs 2.23 = 9.10 */
export function sumLine(row: Sum): string {
  const decimals = decimalsFor(row)
  const parts = row.terms.map(({ name, value }, i) => {
    const sign = value < 0 ? "− " : i === 0 ? "" : "+ "
    return `${sign}${safeLine(name)} ${Math.abs(value).toFixed(decimals)}`
  })
  return `${parts.join(" ")} ${addsUp(row) ? "=" : "≠"} ${row.score_final.toFixed(decimals)}`
}

/** Four digits that tell something, whatever the scale: bm25 counts in tens, fused ranks in hundredths. */
function decimalsFor({ score_final, terms }: Sum): number {
  const largest = Math.max(...[score_final, ...terms.map((term) => term.value)].map(Math.abs))
  return largest === 0 ? 0 : Math.min(9, Math.max(2, 3 - Math.floor(Math.log10(largest))))
}
