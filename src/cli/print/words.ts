import { clip, safe, type Terminal, widthOf, wrap } from "../../render/terminal.ts"
import { commandLine } from "../../tools/view.ts"
import { asTyped } from "./as-typed.ts"

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
