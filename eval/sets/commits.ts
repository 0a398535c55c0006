import { readFileSync } from "node:fs"
import { BENCH_DIR, type EvalSet, requirePath } from "../set.ts"
import { maskedCorpus } from "./corpus.ts"

type Commit = { commit: string; subject: string; date: string; conversations: string[] }

/** "fmt" and "fix lint" are not specific enough. */
const LEAST_WORDS = 4

/** Commit subjects → the conversations that made them, by links that the project itself recorded. Halves by time. */
export function commits(): EvalSet {
  const rows = readFileSync(requirePath(`${BENCH_DIR}/commits/commits.jsonl`), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Commit)
    .sort((a, b) => Date.parse(a.date) - Date.parse(b.date))
  const asked = rows.filter((row) => row.subject.trim().split(/\s+/).length >= LEAST_WORDS)
  return {
    name: "commits",
    unit: "conversation",
    chats: { transcripts: maskedCorpus(rows.map((row) => row.subject)) },
    questions: asked.map((row, i) => ({
      id: row.commit.slice(0, 12),
      text: row.subject,
      category: "commit",
      half: i < asked.length / 2 ? "tune" : "held",
      gold: row.conversations,
      date: row.date,
    })),
  }
}
