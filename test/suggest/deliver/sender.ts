import { writeSync } from "node:fs"
import { join } from "node:path"
import { tryLock } from "../../../src/store/sqlite/lock.ts"
import { openSuggestions } from "../../../src/store/suggestions/suggestions.ts"
import { deliverDue } from "../../../src/suggest/deliver/deliver.ts"
import { suggestionOf } from "../../support/suggestions.ts"

// A process that makes suggestions and delivers them until all are delivered. It may be killed at any moment. The next one
// continues with the state in suggest.db alone. Its clock is faster than the real one.

const [dir, host, events, epoch, speed] = process.argv.slice(2) as [string, string, string, string, string]
const now = () => Number(epoch) + (Date.now() - Number(epoch)) * Number(speed)
const MADE_AT_ONCE = 40

const suggestions = openSuggestions(join(dir, "suggest.db"))
let lock = tryLock(join(dir, "deliver.lock"))
if (!lock) throw new Error("another one delivers: a killed process must not hold its lock")

for (;;) {
  const made = suggestions.list({ limit: 1 })[0]?.seq ?? 0
  if (made < Number(events)) writeSync(1, ".") // for a test that kills it while it makes some
  for (let i = made + 1; i <= Math.min(Number(events), made + MADE_AT_ONCE); i++) {
    const kept = suggestions.save(suggestionOf(`event-${i}`, { status: "pending", moment: { at: now() } }), {
      subscription: "sub",
    })
    if (!kept.kept) throw new Error(kept.why)
  }
  await deliverDue({
    suggestions,
    now,
    version: "test",
    allowedHosts: () => [host],
    mayLeave: () => true,
    timeoutMs: 2_000,
  })
  const next = suggestions.nextDue()
  if (made >= Number(events) && next === undefined) break
  if (made >= Number(events))
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, (next! - now()) / Number(speed))))
}
suggestions.close()
lock.release()
lock = undefined
