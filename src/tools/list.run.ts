import type { SourceId } from "../core/conversation.ts"
import type { Dex } from "./context.ts"
import { conversationOf, dateRange, PERSONS_KINDS } from "./fields.ts"

export type ListInput = {
  project?: string
  source?: SourceId
  from?: string
  to?: string
  all?: boolean
  limit: number
  offset: number
}

export async function run(dex: Dex, input: ListInput) {
  const store = await dex.store()
  const { rows, total, left_out } = await store.list({
    ...(input.project !== undefined && { project: input.project }),
    ...(input.source !== undefined && { source: input.source }),
    ...dateRange(input, dex.now()),
    ...(!input.all && { kinds: PERSONS_KINDS }),
    inside: dex.project,
    limit: input.limit,
    offset: input.offset,
  })
  const next = input.offset + rows.length
  return {
    conversations: rows.map(conversationOf),
    total,
    left_out,
    ...(next < total && rows.length > 0 && { next_offset: next }),
  }
}
