import { followSpending, learningProgress } from "../../ingest/follow-spending.ts"
import type { SpendingFile } from "../../store/spending/spending-file.ts"
import type { Dex } from "../context.ts"
import { UNFINISHED } from "../learned.ts"

/** So many conversations a server reads beside its answers; more of them another process reads. */
const FEW = 16

/**
 * What was spent, brought up to what the history says. Syncs do that, so there is something to read only after a history
 * was imported, or was filled by an older dex. The notes say what is not known yet.
 */
export async function spendingOf(dex: Dex): Promise<{ spending: SpendingFile; notes: string[] }> {
  const spending = await dex.spending()
  const store = await dex.store()
  const { complete } = await followSpending(store, spending, {
    ...(dex.learnBehind && { mostRead: FEW }),
    ...(dex.signal && { signal: dex.signal }),
    ...(dex.onProgress && { onProgress: learningProgress(store, dex.onProgress) }),
  })
  if (complete) return { spending, notes: [] }
  return { spending, notes: dex.learnBehind ? await dex.learnBehind({ only: "spending" }) : [UNFINISHED] }
}
