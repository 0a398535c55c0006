import { type EvalHome, openHome } from "./home.ts"
import { genuineCorpus } from "./sets/corpus.ts"

/** The genuine conversations as a user's history. */
export function openGenuineHome(): Promise<EvalHome> {
  return openHome({ name: "questions", unit: "conversation", chats: { transcripts: genuineCorpus() }, questions: [] })
}
