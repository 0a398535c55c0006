import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { agentNamed, resolveConversation } from "../../tools/resolve.ts"
import type { PageRequest } from "../page.ts"

/** The conversation that an address names. */
export type ConversationRead = { dex: Dex; row: ConversationRow; agent: string }

export async function conversationAsked({ dex, params }: PageRequest): Promise<ConversationRead> {
  const { row } = await resolveConversation(dex, { id: params.ref ?? "" })
  return { dex, row, agent: (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source }
}
