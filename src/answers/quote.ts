const MOST_CHARS = 260
const LONGEST_PIECE = 400
/** Four words or more. */
const SENTENCE = /(?:[\p{L}\p{N}]+[^\p{L}\p{N}]+){3}[\p{L}\p{N}]/u

/**
 * The part of a text that says most of what was asked: a run of its lines or sentences, exactly as they stand there.
 * `weights` says how much each word tells.
 */
export function quoteFrom(text: string, words: string[], weights: number[], most = MOST_CHARS): string {
  const pieces = piecesOf(text)
  const stems = words.map(stemOf)
  const held = pieces.map(({ start, end }) => {
    const lower = text.slice(start, end).toLowerCase()
    return stems.map((stem) => lower.includes(stem))
  })
  // Where no word stands as it was asked, the first thing that is said.
  const opening = Math.max(
    0,
    pieces.findIndex(({ start, end }) => SENTENCE.test(text.slice(start, end))),
  )
  let best = { from: opening, to: opening, score: 0 }
  for (const [from, first] of pieces.entries()) {
    const found = stems.map(() => false)
    for (let to = from; to < pieces.length; to++) {
      const length = pieces[to]!.end - first.start
      if (length > most && to > from) break
      for (const [w, holds] of held[to]!.entries()) found[w] ||= holds
      // Of two that hold the same words, the shorter one says them more plainly.
      const score = found.reduce((sum, holds, w) => sum + (holds ? weights[w]! : 0), 0) - length / 10_000
      if (score > best.score) best = { from, to, score }
    }
  }
  const [first, last] = [pieces[best.from], pieces[best.to]]
  if (!first || !last) return ""
  const quote = text.slice(first.start, last.end)
  return quote.length > most ? around(quote, stems, most) : quote
}

/** Sentences and lines, each with where it stands. What is longer than anybody reads is cut. */
function piecesOf(text: string): { start: number; end: number }[] {
  const pieces: { start: number; end: number }[] = []
  for (const match of text.matchAll(/[^\n]+/g)) {
    let start = match.index
    const end = start + match[0].length
    for (const stop of match[0].matchAll(/[.!?](?=\s+[\p{Lu}`"'([])/gu)) {
      pieces.push({ start, end: match.index + stop.index + 1 })
      start = match.index + stop.index + 1
    }
    pieces.push({ start, end })
  }
  return pieces.flatMap((piece) => trimmed(text, piece)).flatMap(cutLong)
}

function trimmed(text: string, { start, end }: { start: number; end: number }) {
  const piece = text.slice(start, end)
  const from = start + piece.length - piece.trimStart().length
  const to = end - (piece.length - piece.trimEnd().length)
  return to > from ? [{ start: from, end: to }] : []
}

function cutLong({ start, end }: { start: number; end: number }) {
  const cut = []
  for (let at = start; at < end; at += LONGEST_PIECE) cut.push({ start: at, end: Math.min(end, at + LONGEST_PIECE) })
  return cut
}

function around(quote: string, stems: string[], most: number): string {
  const lower = quote.toLowerCase()
  const at = stems.map((stem) => lower.indexOf(stem)).filter((index) => index >= 0)
  const from = Math.max(0, Math.min(quote.length - most, (at.length > 0 ? Math.min(...at) : 0) - 40))
  return wholeCharacters(quote.slice(from, from + most)).trim()
}

/** Half a surrogate pair is no text. */
function wholeCharacters(text: string): string {
  return text.replace(/^[\udc00-\udfff]/, "").replace(/[\ud800-\udbff]$/, "")
}

function stemOf(word: string): string {
  return word.toLowerCase().replace(/(?:ing|ed|es|s)$/, (end, at: number) => (at >= 4 ? "" : end))
}
