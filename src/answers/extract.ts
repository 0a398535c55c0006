import { wordWeights } from "../search/floor.ts"
import { parseQuery } from "../search/query.ts"
import type { Dex } from "../tools/context.ts"
import type { Cited } from "./cited.ts"
import type { FoundPassage } from "./library.ts"
import { quoteFrom } from "./quote.ts"

/** An answer without a model: the best quotes, exactly as they stand in what was found. */
export async function extract(dex: Dex, question: string, found: FoundPassage[]): Promise<Cited[]> {
  const query = parseQuery(question)
  const index = await dex.index()
  const weights = index ? await wordWeights(index, query) : query.words.map(() => 1)
  const quotes = found.map(({ passage }) => ({ passage, quote: quoteFrom(passage.text, query.words, weights) }))
  return quotes
    .filter(({ quote }) => quote !== "")
    .map(({ passage, quote }) => ({ text: `“${quote}” [${passage.n}]`, numbers: [passage.n] }))
}
