import { addsUp, type TraceRow } from "../../core/trace.ts"
import { clip, safe, safeLine, type Terminal, terminalOf, widthOf, wrap } from "../../render/terminal.ts"
import { shortDate, when } from "../../render/words.ts"
import { commandLine } from "../../tools/view.ts"

export type PrintContext = {
  terminal: Terminal
  home: string
  /** True if row numbers are saved, so that a person can type them in the next command. */
  numbered: boolean
  /** The height of the screen. Undefined if the person gave a limit. */
  rows?: number
  /** True if messages name the forms of `dex show` instead of the old commands. */
  hasForms?: boolean
}
/** A page for the pager. Each call of `lines` generates them from the beginning. */
export type ReadPage = { lines: () => Iterable<string>; title?: string; notes?: string[] }
export type PrintedOutput = {
  lines: string[]
  /** The title in the pager's prompt. */
  title?: string
  /** Printed to stderr, because they are not results. */
  notes?: string[]
  /** Why the command failed. Printed last; the exit code is 2. */
  problem?: string
  /** The refs that the row numbers stand for in the next command. */
  listing?: string[]
  /** The words that a search highlighted in its rows. They are highlighted again when a result is read. */
  words?: string[]
}

/**
 * People copy refs, so a ref is never cut: if there is no room for it, it gets a line of its own. The facts before it may be cut.
 */
export function factsWithRef(facts: readonly string[], ref: string | undefined, room: number): string[] {
  const factLine = facts.filter((fact) => fact !== "").join(" · ")
  if (!ref) return factLine === "" ? [] : [clip(factLine, room)]
  if (factLine === "") return [ref]
  const line = `${factLine} · ${ref}`
  return widthOf(line) <= room ? [line] : [clip(factLine, room), ref]
}

/** A time in a list: short on a terminal, and complete in a pipe, which may be read much later. */
export function dateIn(terminal: Pick<Terminal, "interactive">, iso: string, now = Date.now()): string {
  return terminal.interactive ? shortDate(iso, now) : when(iso)
}

/** The columns that a list's titles get before its other columns: 45 of 80, 50 of 100 and 70 of 140. */
export function titleColumns(columns: number): number {
  return Math.max(Math.min(45, Math.floor(columns * 0.65)), Math.floor(columns / 2))
}

/** The command that shows the first of these refs: by row number if rows are numbered, otherwise by ref. */
export function showFirst(refs: readonly string[], { numbered }: { numbered: boolean }): string {
  return numbered ? "dex show 1" : commandLine("show", [refs[0] ?? ""])
}

/** An error message. On a terminal it is wrapped between words; in a pipe lines are not wrapped. */
export function formatError(message: string, terminal: Terminal): string {
  const lines = `dex: ${asTyped(safe(message), terminal)}`.split("\n")
  return `${(terminal.interactive ? lines.flatMap((line) => wrap(line, terminal.columns)) : lines).join("\n")}\n`
}

/** A word of a command line, quoted for a shell if it would read it as something else. */
export function shellQuote(word: string): string {
  return /^(?!=)[\w./~:=@,+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** The kind as words: `related code` for `related_code`. */
export function kindName(kind: string): string {
  return kind.replaceAll("_", " ")
}

/**
 * The words that may follow `dex`. They are repeated here so that printing a line does not load the definitions of all commands.
 * A test compares them with the definitions.
 */
export const WORDS_AFTER_DEX =
  `search find list ls index show open get timeline scan read resume recover fix blame suggest tests decisions note notes
  suggestions feedback report subscribe subscriptions unsubscribe docs traces trace stats usage cost costs guide sync sources doctor secrets forget rm
  private project mute reindex gc backup restore share export hub import eval config why ask chat map digest rules install uninstall handover
  watch pick view serve hook completions help -h --help version -v -V --version --plain`.split(/\s+/)

/** Rewrites the commands in dex's messages as this person types them: `npx dexctx show 1` if dex was started with npx. */
export function asTyped(text: string, { program }: Pick<Terminal, "program">): string {
  if (program === undefined) return text
  const command = new RegExp(`^dex$|(?<![\\w./-])dex(?=\`| (?:${WORDS_AFTER_DEX.join("|")})(?![\\w-]))`, "g")
  return text.replace(command, program)
}

/** Prints text that is not a result to stderr. Wraps it between words and rewrites its commands with `asTyped`. */
export function say(...texts: string[]): void {
  const terminal = terminalOf(process.stderr, process.env)
  const lines = texts.flatMap((text) => wrap(asTyped(safe(text), terminal), terminal.columns))
  process.stderr.write(`${lines.join("\n")}\n`)
}

type ScoreSum = Pick<TraceRow, "score_final" | "terms">

/** A score as a sum: `words 6.87 + pairs 2.23 = 9.10`. */
export function scoreSumLine(row: ScoreSum): string {
  const decimals = decimalsFor(row)
  const parts = row.terms.map(({ name, value }, i) => {
    const sign = value < 0 ? "− " : i === 0 ? "" : "+ "
    return `${sign}${safeLine(name)} ${Math.abs(value).toFixed(decimals)}`
  })
  return `${parts.join(" ")} ${addsUp(row) ? "=" : "≠"} ${row.score_final.toFixed(decimals)}`
}

/** Enough decimals for four significant digits: bm25 scores are in the tens, fused ranks in the hundredths. */
function decimalsFor({ score_final, terms }: ScoreSum): number {
  const largest = Math.max(...[score_final, ...terms.map((term) => term.value)].map(Math.abs))
  return largest === 0 ? 0 : Math.min(9, Math.max(2, 3 - Math.floor(Math.log10(largest))))
}
