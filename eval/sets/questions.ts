import { readFileSync } from "node:fs"
import { type EvalSet, halfOf, type Question } from "../set.ts"
import { genuineCorpus } from "./corpus.ts"

type Written = { id: string; question: string; kind: string; far: boolean; refs: string[] }

const read = <T>(name: string) =>
  readFileSync(new URL(name, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T)

/** Questions that a developer would ask about the genuine conversations; written from reading them, before any ranking. */
export function questions(unit: "message" | "conversation"): EvalSet {
  return {
    name: unit === "message" ? "questions-message" : "questions",
    unit,
    chats: { transcripts: genuineCorpus() },
    questions: read<Written>("../questions.jsonl").map(({ id, question, kind, far, refs }): Question => {
      const names = refs.map((ref) => ref.replace(/^claude_code:/, ""))
      return {
        id,
        text: question,
        category: far ? "few words shared" : kind === "error" || kind === "command" ? "error or command" : "plain",
        half: halfOf(id),
        gold: unit === "message" ? names : [...new Set(names.map((name) => name.split("#")[0]!))],
      }
    }),
  }
}

/** Questions that nothing in the genuine conversations answers. */
export function unanswered(): Omit<Question, "gold">[] {
  return read<{ id: string; question: string; near: boolean }>("../unanswered.jsonl").map(({ id, question, near }) => ({
    id,
    text: question,
    category: near ? "near" : "elsewhere",
    half: halfOf(id),
  }))
}
