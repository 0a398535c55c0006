/** One change to a text. In a list, each edit refers to the text that the previous one produced. */
export type TextEdit = { at: number; removed: string; inserted: string }

export function applyEdit(text: string, edit: TextEdit): string {
  return text.slice(0, edit.at) + edit.inserted + text.slice(edit.at + edit.removed.length)
}

/** The text before the edits, if `text` is exactly what they produced. */
export function undoEdits(text: string, edits: readonly TextEdit[]): string {
  return edits.reduceRight(
    (current, { at, removed, inserted }) => applyEdit(current, { at, removed: inserted, inserted: removed }),
    text,
  )
}

/** The line ending of a text, taken from its first line. */
export function newlineOf(text: string): "\n" | "\r\n" {
  const firstNewline = text.indexOf("\n")
  return firstNewline > 0 && text[firstNewline - 1] === "\r" ? "\r\n" : "\n"
}

/** A problem with a file that dex should edit. Its message continues a sentence that begins with the file's path. */
export class EditProblem extends Error {
  override name = "EditProblem"
}

export function lineNumber(text: string, position: number): number {
  return text.slice(0, position).split("\n").length
}
