import { readFileSync } from "node:fs"
import type { EvalSet, Question } from "../set.ts"
import { genuineCorpus } from "./corpus.ts"

type Written = { id: string; half: "build" | "held"; kind: string; question: string; refs: string[] }

/** Questions that share few words with their answer. Nobody tunes on them, so all of them are held out. */
export function far(): EvalSet {
  const lines = readFileSync(new URL("../answers/far.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
  return {
    name: "far",
    unit: "conversation",
    chats: { transcripts: genuineCorpus() },
    questions: lines.map((line): Question => {
      const { id, question, kind, refs } = JSON.parse(line) as Written
      const conversations = refs.map((ref) => ref.replace(/^claude_code:/, "").split("#")[0]!)
      return { id, text: question, category: kind, half: "held", gold: [...new Set(conversations)] }
    }),
  }
}
