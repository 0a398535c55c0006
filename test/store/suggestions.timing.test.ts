import { join } from "node:path"
import Database from "better-sqlite3"
import { expect, onTestFinished, test } from "vitest"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"

function opened(options?: { busyMs?: number }) {
  const path = join(tempDir(), "suggest.db")
  const suggestions = openSuggestions(path, options)
  onTestFinished(() => suggestions.close())
  return { path, suggestions }
}

test("saving a suggestion takes less than 5 ms", () => {
  const { suggestions } = opened()
  suggestions.save(suggestionOf("first"))
  const times = Array.from({ length: 400 }, (_, i) => {
    const started = performance.now()
    suggestions.save(suggestionOf(`s${i}`, { items: [1, 2, 3, 4, 5].map((n) => itemOf({ key: `${i}-${n}` })) }))
    return performance.now() - started
  }).sort((a, b) => a - b)
  console.log(`save: median ${times[200]!.toFixed(2)} ms, p95 ${times[380]!.toFixed(2)} ms`)
  expect(times[200]).toBeLessThan(5)
})

test("a hook does not wait for a locked file", () => {
  const { path, suggestions } = opened({ busyMs: 20 })
  suggestions.save(suggestionOf("a"))
  const other = new Database(path)
  other.exec("begin exclusive")
  const started = performance.now()
  expect(suggestions.save(suggestionOf("b"))).toMatchObject({ kept: false, why: expect.stringContaining("locked") })
  expect(performance.now() - started).toBeLessThan(200)
  other.exec("rollback")
  other.close()
})
