import { DexError, messageOf } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import { briefText } from "../../render/brief-text.ts"
import { withSize } from "../../render/budget.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { readBrief } from "../handover/run.ts"
import { openConversation } from "./reading.ts"
import { familyHead } from "./run-show.ts"
import type { ShowInput } from "./show.ts"

const SUMMARY_TOKENS = 1_200

/** The goal, state, decisions and files of conversations, as a handover has them, and a model's words if there is a model. */
export async function summarize(dex: Dex, ids: readonly (string | undefined)[], input: ShowInput) {
  const conversations = []
  for (const id of ids) {
    const { row, number } = await openConversation(dex, { id, session: input.session })
    const { brief, head, messages } = await readBrief(dex, row, number)
    const onlySummary = { ...brief, commands: [], made: [], open_ends: [] }
    const { text, ...smallest } = briefText(onlySummary, head, input.max_tokens ?? SUMMARY_TOKENS)
    if (text === undefined)
      throw new DexError(
        "budget",
        `${input.max_tokens} tokens are too few: the smallest summary takes about ${"needed" in smallest ? smallest.needed : ""}.`,
      )
    const { goal, state, decisions, files, left_out } = text
    const quoted = new Set([...goal, ...state, ...decisions].map(({ ref }) => ref))
    const summary = { goal, state, decisions, files, left_out }
    const words = await modelWords(
      dex,
      row,
      messages.filter((one) => quoted.has(formatRef({ ...row.ref, number: one.number }))),
    )
    conversations.push({
      ...familyHead(row),
      messages: [],
      files: [],
      total_tokens: 0,
      summary: { ...summary, ...words },
    })
  }
  return withSize({ conversations })
}

/** Only a person gets a model's words: an agent is a model. What the model cannot say is no reason to withhold the facts. */
async function modelWords(dex: Dex, row: ConversationRow, messages: StoredMessage[]) {
  if (dex.caller !== undefined || !dex.summarize) return {}
  try {
    return { words: await dex.summarize(dex, row, messages) }
  } catch (error) {
    return { note: `The model wrote nothing: ${messageOf(error)}` }
  }
}
