// How a phrase of the tables in cues.ts is looked for.

/** What a sentence may begin with, whatever it says. */
const OPENERS =
  "(?:(?:and|also|please|but|so|then|ok|okay|no|nope|nah|yes|yeah|sure|hmm|actually|alright|well|oh|ah|now)[\\s,.:!-]+){0,4}"

const WILD: Record<string, string> = { "~": "(?:[^\\s,;]+\\s+){0,2}?", "…": "(?:[^\\s,;:]+\\s+){0,10}?" }

/** Matches where any of the phrases occurs, in any case. */
export function anyPhrase(phrases: readonly string[]): RegExp {
  return new RegExp(phrases.map((phrase) => `(?:${source(phrase)})`).join("|"), "i")
}

function source(phrase: string): string {
  const starts = phrase.startsWith("^ ")
  const ends = phrase.endsWith(" $")
  const words = phrase.replace(/^\^ /, "").replace(/ \$$/, "")
  const body = words
    .split(/ (?=[~…])|(?<=[~…]) /)
    .map((piece) => WILD[piece] ?? `${alternatives(piece)}(?:\\s+|(?=[^\\w'])|$)`)
    .join("")
  const before = /^\w/.test(words) ? "(?<![\\w'])" : ""
  return `${starts ? `^${OPENERS}` : before}${body}${ends ? "[\\s.!]*$" : ""}`
}

function alternatives(piece: string): string {
  return piece
    .split(" ")
    .map((word) => (word.includes("/") ? `(?:${word.split("/").map(escaped).join("|")})` : escaped(word)))
    .join("\\s+")
}

function escaped(word: string): string {
  return word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("_", "\\s+")
}
