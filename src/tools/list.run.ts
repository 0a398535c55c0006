import type { SourceId } from "../core/conversation.ts"
import { fitted, tooSmall } from "../render/budget.ts"
import type { Dex } from "./context.ts"
import { conversationOf, dateRange, PERSONS_KINDS } from "./fields.ts"
import { resolveSession } from "./resolve.ts"
import { commandLine } from "./view.ts"

export type ListInput = {
  project?: string
  source?: SourceId
  from?: string
  to?: string
  all?: boolean
  session?: string
  limit: number
  offset: number
  max_tokens?: number
}

export async function run(dex: Dex, input: ListInput) {
  const store = await dex.store()
  const conversation = await resolveSession(dex, input.session)
  const { rows, total, left_out } = await store.list({
    ...(input.project !== undefined && { project: input.project }),
    ...(input.source !== undefined && { source: input.source }),
    ...dateRange(input, dex.now()),
    ...(!input.all && !conversation && { kinds: PERSONS_KINDS }),
    ...(conversation && { conversation }),
    inside: dex.project,
    limit: input.limit,
    offset: input.offset,
  })
  const work = await store.work(rows.map((row) => row.ref))
  const conversations = rows.map((row, i) => ({ ...conversationOf(row), ...work[i]! }))
  const build = (kept: number) => {
    const next = input.offset + kept
    return {
      conversations: conversations.slice(0, kept),
      total,
      left_out,
      ...(next < total && conversations.length > 0 && { next_offset: next }),
      ...(kept < conversations.length && { continue_with: goOn(input, next) }),
    }
  }
  const fit = fitted(conversations.length, build, input.max_tokens, (i) => conversations[i]!.title.length)
  if (!fit || (fit.kept === 0 && conversations.length > 0)) throw tooSmall(input.max_tokens!, build(1))
  return fit.answer
}

function goOn({ all, offset: _, max_tokens, ...input }: ListInput, next: number): string {
  const call = commandLine("list", [], { ...input, offset: next, "max-tokens": max_tokens })
  return all ? `${call} --all` : call
}
