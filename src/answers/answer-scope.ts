import type { Dex } from "../tools/context.ts"
import { run as runSearch } from "../tools/search/run.ts"

/**
 * What may be looked at for one answer. Kept to in code: whatever a model asks for, nothing else is opened. dex's own
 * chats never are: an answer that could cite an earlier answer would need no source at all.
 */
export type AnswerScope = { among: "history" | "docs" | "all"; collections?: string[]; noGlobal?: boolean }

export type WantedPassages = {
  query: string
  by: "conversation" | "message"
  from?: string
  to?: string
  limit: number
  offset: number
}

/** The messages that match best, not the passages that read best. */
export function searchWithin(dex: Dex, { among, collections, noGlobal }: AnswerScope, wanted: WantedPassages) {
  const scope = { in: among, ...(collections && { collections }), ...(noGlobal && { no_global: true }) }
  return runSearch(dex, { ...wanted, ...scope, explain: false }, { prose: false })
}
