import type { Hunk } from "../../core/conversation.ts"
import { type Html, html } from "./html.ts"

/** A change side by side, the old on the left. At most so many rows; the rest is counted. */
export function diffHtml(hunks: readonly Hunk[], most = Number.POSITIVE_INFINITY): Html {
  const rows = hunks.flatMap((hunk, i) => [
    ...(i > 0 ? [html`<tr class="gap"><td colspan="4">⋯</td></tr>`] : []),
    ...rowsOf(hunk),
  ])
  const left = rows.length - most
  return html`<table class="diff"><tbody>${rows.slice(0, most)}${left > 0 && html`<tr class="gap"><td colspan="4">${left} more lines</td></tr>`}</tbody></table>`
}

function rowsOf({ lines, old_start, new_start }: Hunk): Html[] {
  const rows: Html[] = []
  // Where the agent does not tell where in the file it is, there are no numbers.
  const isPlaced = old_start > 0 || new_start > 0
  let [before, now] = [old_start, new_start]
  let removed: string[] = []
  let added: string[] = []
  const number = (line: number) => (isPlaced ? String(line) : "")
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      const [old, fresh] = [removed[i], added[i]]
      const [oldText, newText] =
        old !== undefined && fresh !== undefined
          ? changedWithin(old, fresh)
          : [html`${old ?? ""}`, html`${fresh ?? ""}`]
      rows.push(
        html`<tr><td class="at">${old !== undefined && number(before++)}</td><td class="${old === undefined ? "none" : "old"}">${oldText}</td><td class="at">${fresh !== undefined && number(now++)}</td><td class="${fresh === undefined ? "none" : "new"}">${newText}</td></tr>`,
      )
    }
    removed = []
    added = []
  }
  for (const line of lines) {
    const text = line.slice(1).replaceAll("\t", "    ")
    if (line.startsWith("-")) {
      if (added.length > 0) flush()
      removed.push(text)
    } else if (line.startsWith("+")) added.push(text)
    else if (!line.startsWith("\\")) {
      flush()
      rows.push(
        html`<tr class="same"><td class="at">${number(before++)}</td><td class="was">${text}</td><td class="at">${number(now++)}</td><td>${text}</td></tr>`,
      )
    }
  }
  flush()
  return rows
}

/** What is different between two lines, between what they begin and end with alike. */
function changedWithin(old: string, fresh: string): [Html, Html] {
  const shortest = Math.min(old.length, fresh.length)
  let start = 0
  while (start < shortest && old[start] === fresh[start]) start++
  let end = 0
  while (end < shortest - start && old[old.length - 1 - end] === fresh[fresh.length - 1 - end]) end++
  const marked = (text: string) => {
    const middle = text.slice(start, text.length - end)
    return html`${text.slice(0, start)}${middle !== "" && html`<mark>${middle}</mark>`}${text.slice(text.length - end)}`
  }
  // Two lines that share little are two lines.
  return start + end < 0.4 * shortest ? [html`${old}`, html`${fresh}`] : [marked(old), marked(fresh)]
}
