import { isSpendingBehind } from "../ingest/follow-spending.ts"
import { hasToLearn } from "../learn/behind.ts"
import type { Freshness } from "../serve/mcp/fresh.ts"
import { STILL_LEARNING } from "../serve/mcp/fresh.ts"
import type { AlsoRead, Dex } from "../tools/context.ts"
import { LEFT_TO_ANOTHER, UNFINISHED } from "../tools/learned.ts"

/** A dex for one page, which knows whether the page was made before everything was learned. */
export type PageDex = Dex & { isLearning(): boolean }

/** How far learning is, in conversations. */
export type Learning = { done: number; total: number; isLearning: boolean }

const STILL_AT_IT = [STILL_LEARNING, LEFT_TO_ANOTHER, UNFINISHED]

/** What is learned within this time is on the page; the rest is learned in the background, and the page follows. */
export function pageDex(dex: Dex, fresh: Freshness, learnWithinMs: number): PageDex {
  let isLearning = false
  const learnBehind = async (also: AlsoRead) => {
    const notes = await fresh.learn(also, learnWithinMs)
    const others = notes.filter((note) => !STILL_AT_IT.includes(note))
    // Asked before the page reads any fact: if everything is learned by now, the page lacks nothing, whoever learned it.
    if (others.length < notes.length && (await isStillBehind(dex, also))) isLearning = true
    return others
  }
  return Object.create(dex, {
    isLearning: { value: () => isLearning },
    learnBehind: { value: learnBehind },
    lastListing: { value: () => ({ refs: [], words: [] }) },
  }) as PageDex
}

export async function learningOf(dex: Dex): Promise<Learning> {
  if (!dex.hasHistory()) return { done: 0, total: 0, isLearning: false }
  const { conversations: total } = await (await dex.store()).stats()
  const spending = await dex.spending()
  if (await isSpendingBehind(await dex.store(), spending))
    return { done: Math.min(spending.counted(), total), total, isLearning: true }
  if (!dex.knows()) return { done: total, total, isLearning: false }
  const done = (await dex.knowledge()).conversations.learnedCount()
  return { done: Math.min(done, total), total, isLearning: await isBehindHistory(dex) }
}

async function isBehindHistory(dex: Dex): Promise<boolean> {
  return hasToLearn(await dex.store(), await dex.knowledge())
}

/** A page that says it is still learning waits for an event, and after the last one none comes. */
async function isStillBehind(dex: Dex, { only, ...more }: AlsoRead): Promise<boolean> {
  if (only === "spending") return isSpendingBehind(await dex.store(), await dex.spending())
  return Object.values(more).some((one) => one !== undefined) || isBehindHistory(dex)
}
