/** A search term: a word, or several adjacent words. With `prefix`, the last word may be longer. */
export type Term = { words: string; prefix?: true }

/** Converts a term to an FTS5 expression. Nothing in the words is treated as an operator. */
export function expressionOf({ words, prefix }: Term): string {
  return `"${words.replaceAll('"', " ")}"${prefix ? " *" : ""}`
}

export function anyOf(terms: readonly Term[]): string {
  return terms.map(expressionOf).join(" OR ")
}
