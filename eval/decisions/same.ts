import type { StoredMessage } from "../../src/store/history/store.ts"
import { plain } from "./sentences.ts"

// Whether what was found is what was labelled.

export type FoundQuote = { quote: string; message: StoredMessage }

/** The found words contain the labelled ones, or are a part of them; a typed answer belongs to its question. */
export function isSameQuote({ quote: found, message }: FoundQuote, kind: string | undefined, texts: string[]): boolean {
  const quote = plain(found)
  if (texts.map(unmarked).some((text) => quote.includes(text) || text.includes(quote))) return true
  if (kind !== "answer") return false
  const all = plain(message.parts.map(({ text }) => text).join(" "))
  return texts.some((text) => {
    const at = all.indexOf(`"${text}"="`)
    return at >= 0 && all.slice(at + text.length + 4).startsWith(quote)
  })
}

/** Without the marks of a heading, a list item or a quote. */
function unmarked(text: string): string {
  return text.replace(/^(?:#+|-) /, "").replace(/^"(.*)"$/, "$1")
}
