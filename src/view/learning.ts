import { isSpendingOutdated } from "../ingest/follow-spending.ts"
import { needsLearning } from "../learn/outdated.ts"
import type { Freshness } from "../serve/mcp/fresh.ts"
import { STILL_LEARNING } from "../serve/mcp/fresh.ts"
import type { Dex, ExtraFacts } from "../tools/context.ts"
import { ANOTHER_IS_LEARNING, LEARNING_UNFINISHED } from "../tools/learned.ts"

/** A dex for one page. It records whether the page was rendered before dex had learned everything. */
export type PageDex = Dex & { isLearning(): boolean }

/** The progress of learning, in conversations. */
export type Learning = { done: number; total: number; isLearning: boolean }

const UNFINISHED_NOTES = [STILL_LEARNING, ANOTHER_IS_LEARNING, LEARNING_UNFINISHED]

/**
 * Makes a dex for one page. Rendering waits at most `learnWithinMs` for learning. The rest is learned in the background, and the
 * page is updated later.
 */
export function pageDex(dex: Dex, fresh: Freshness, learnWithinMs: number): PageDex {
  let isLearning = false
  const learnInBackground = async (extraFacts: ExtraFacts) => {
    const notes = await fresh.learn(extraFacts, learnWithinMs)
    const finalNotes = notes.filter((note) => !UNFINISHED_NOTES.includes(note))
    // Checked before the page reads any facts. If another process has learned everything by now, the page will be complete.
    if (finalNotes.length < notes.length && (await isStillBehind(dex, extraFacts))) isLearning = true
    return finalNotes
  }
  return Object.create(dex, {
    isLearning: { value: () => isLearning },
    learnInBackground: { value: learnInBackground },
    lastListing: { value: () => ({ refs: [], words: [] }) },
  }) as PageDex
}

export async function learningOf(dex: Dex): Promise<Learning> {
  if (!dex.hasHistory()) return { done: 0, total: 0, isLearning: false }
  const { conversations: total } = await (await dex.store()).stats()
  const spending = await dex.spending()
  if (await isSpendingOutdated(await dex.store(), spending))
    return { done: Math.min(spending.counted(), total), total, isLearning: true }
  if (!dex.hasKnowledge()) return { done: total, total, isLearning: false }
  const done = (await dex.knowledge()).conversations.learnedCount()
  return { done: Math.min(done, total), total, isLearning: await isBehindHistory(dex) }
}

async function isBehindHistory(dex: Dex): Promise<boolean> {
  return needsLearning(await dex.store(), await dex.knowledge())
}

/**
 * True if something is still to be learned. If nothing is, no event will follow, and a page that says that dex is still learning
 * would wait for one forever.
 */
async function isStillBehind(dex: Dex, { only, ...more }: ExtraFacts): Promise<boolean> {
  if (only === "spending") return isSpendingOutdated(await dex.store(), await dex.spending())
  return Object.values(more).some((value) => value !== undefined) || isBehindHistory(dex)
}
