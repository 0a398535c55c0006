/** What the index is asked for: a word, or several that stand side by side. `prefix`: the last one may go on. */
export type Term = { words: string; prefix?: true }

/** As FTS5 takes it. Whatever the words are, they are words: nothing in them is an operator. */
export function expressionOf({ words, prefix }: Term): string {
  return `"${words.replaceAll('"', " ")}"${prefix ? " *" : ""}`
}

export function anyOf(terms: readonly Term[]): string {
  return terms.map(expressionOf).join(" OR ")
}
