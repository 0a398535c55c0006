import { readFileSync } from "node:fs"
import type { EvalSet, Question } from "../set.ts"
import { genuineCorpus } from "./corpus.ts"

type Written = {
  id: string
  half: "build" | "held"
  words?: "same" | "other"
  of?: string
  question: string
  answers?: { ref?: string }[]
}

/** Questions of the kinds that people type, about the genuine conversations, half of them in other words than the answer's. */
export function hard(): EvalSet {
  const lines = readFileSync(new URL("../answers/hard.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
  const written = lines.map((line) => JSON.parse(line) as Written).filter((one) => one.of === "conversations")
  return {
    name: "hard",
    unit: "conversation",
    chats: { transcripts: genuineCorpus() },
    questions: written.map(({ id, half, words, question, answers = [] }): Question => {
      const conversations = answers.flatMap(({ ref }) => ref?.replace(/^claude_code:/, "").split("#")[0] ?? [])
      return {
        id,
        text: question,
        category: `${words} words`,
        half: half === "build" ? "tune" : "held",
        gold: [...new Set(conversations)],
      }
    }),
  }
}
