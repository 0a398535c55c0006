import { existsSync } from "node:fs"
import { dexHome } from "../../src/config/home.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { NEW_SESSION } from "../../src/suggest/finders/finder.ts"
import { RELEVANCE_WEIGHTS } from "../../src/suggest/relevance.ts"
import { suggestItems } from "../../src/suggest/suggest.ts"

/** Repeats every moment at which something was suggested on this machine. A used item that is no longer found is a regression. */
export function replayKept(): string {
  const home = dexHome(process.env)
  if (!existsSync(home.suggest) || !existsSync(home.knowledge))
    return "NOT RUN: nothing was suggested on this machine yet."
  const [kept, knowledge] = [openSuggestions(home.suggest), openKnowledge(home.knowledge)]
  const all = kept.list({ limit: 10_000 })
  const lost: string[] = []
  const counts = { items: 0, same: 0, used: 0, used_lost: 0 }
  for (const { id, moment, items } of all) {
    const now = suggestItems({ knowledge }, moment, NEW_SESSION, {
      weights: RELEVANCE_WEIGHTS,
      floor: 0,
      maxItems: Number.POSITIVE_INFINITY,
    })
    const keys = new Set(now.map(({ key }) => key))
    for (const { key, title, status } of items) {
      counts.items++
      if (status === "used") counts.used++
      if (keys.has(key)) counts.same++
      else if (status === "used") {
        counts.used_lost++
        lost.push(`  ${id.slice(0, 8)}  ${title}`)
      }
    }
  }
  kept.close()
  knowledge.close()
  return [
    `${all.length} suggestions with ${counts.items} items: ${counts.same} would be found again; of ${counts.used} that were used, ${counts.used_lost} would not:`,
    ...lost,
  ].join("\n")
}
