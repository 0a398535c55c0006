import type { ConversationRow, StoredMessage } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { configuredModel } from "../tools/model.ts"
import { checkAnswer, textWithSources } from "./ask.run.ts"
import { openLibrary } from "./library.ts"
import { DEFAULT_CAPS, runLoop } from "./loop.ts"

/**
 * A model's summary of a conversation, written from these messages. Sentences that their sources do not support are dropped.
 * Undefined if no model is set up, or if nothing is left.
 */
export async function summarizeConversation(dex: Dex, row: ConversationRow, messages: StoredMessage[]) {
  const model = await configuredModel(dex)
  if (!model) return undefined
  const library = await openLibrary(dex, { among: "history" })
  const { text } = await runLoop(model, library, {
    question: `What was the conversation “${row.title?.text ?? ""}” for, how does the work stand, and what was decided? Answer in at most five sentences, from these passages alone.`,
    firstPassages: messages.flatMap((message) => library.passages.add(row, message) ?? []),
    caps: DEFAULT_CAPS,
    signal: dex.signal,
  })
  const checked = checkAnswer(text, library)
  return checked.kept.length === 0 ? undefined : textWithSources(checked, library)
}
