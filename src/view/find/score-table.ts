import { type Html, html } from "../../render/html/html.ts"

/** What each part of a score stands for. */
const SAYS: Record<string, string> = {
  words: "the words, the rarer the more",
  common: "very common words",
  pairs: "words that stand together as you typed them",
  neighbours: "hits in the messages beside it",
  others: "more messages of this conversation",
  title: "the words of its title",
  vector: "what it means",
  rerank: "a model's own order",
}

/** A score as the sum that it is. */
export function scoreTable(parts: readonly { name: string; value: number }[], sum: number): Html {
  const rows = [...merged(parts)].map(
    ([name, value]) =>
      html`<tr><th scope="row">${name}</th><td class="says">${SAYS[name] ?? ""}</td><td class="number">${value.toFixed(2)}</td></tr>`,
  )
  return html`<table class="score"><caption class="unseen">What the score is made of</caption><tbody>${rows}</tbody><tfoot><tr><th scope="row">score</th><td class="says"></td><td class="number">${sum.toFixed(2)}</td></tr></tfoot></table>`
}

/** Several words, or several neighbours, are one line. */
function merged(parts: readonly { name: string; value: number }[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { name, value } of parts) sums.set(name, (sums.get(name) ?? 0) + value)
  return sums
}
