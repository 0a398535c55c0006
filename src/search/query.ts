/** Words that stand in nearly every message and tell nothing apart. Dropped unless there is nothing else. */
const STOPWORDS = new Set(
  (
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my no not of on or our " +
    "should so than that the their them then there these they this to was we were what when where which who why will with would you your"
  ).split(" "),
)

/** What was typed, as FTS5 expressions in which every word is quoted: no input can be a syntax error. */
export type Query = {
  /** Words as typed, without their quotes; for marking them in text. */
  words: string[]
  /** Every word must be there. Undefined when nothing was typed that could be searched for. */
  all?: string
  /** At least one must be. Undefined when that is the same as `all`. */
  some?: string
}

export function parseQuery(text: string): Query {
  const terms = [...text.matchAll(/"([^"]*)"?|([^\s"]+)/g)]
    .map(([, phrase, word]) => (phrase ?? word ?? "").replaceAll("\0", " "))
    .filter((term) => /[\p{L}\p{N}\p{Co}]/u.test(term))
  const telling = terms.filter((term) => !STOPWORDS.has(term.toLowerCase()))
  const kept = telling.length > 0 ? telling : terms
  if (kept.length === 0) return { words: [] }
  const quoted = kept.map((term) => `"${term.replaceAll('"', '""')}"`)
  return {
    words: kept.flatMap((term) => term.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "")),
    all: quoted.join(" AND "),
    ...(quoted.length > 1 && { some: quoted.join(" OR ") }),
  }
}
