import Database from "better-sqlite3"
import { messageText } from "../src/core/format.ts"
import type { EvalHome } from "./home.ts"
import type { EvalSet, Question } from "./set.ts"

// What SQLite alone finds: one FTS5 table with the porter stemmer, any of the words except the most common, bm25. It gets the
// same text as the product, and every figure is compared with it.

const STOPWORDS = new Set(
  (
    "a an the of to in on at for and or is are was were be been do does did has have had what when where which who whom whose why how many much " +
    "i you he she it we they my your his her its our their this that these those with from by as about me him them can could would should will"
  ).split(" "),
)

export type Baseline = { rank(question: Question): string[]; close(): void }

type Piece = { id: string; group: string; project: string; text: string }

const DEPTH = 200

export async function openBaseline(set: EvalSet, home: EvalHome): Promise<Baseline> {
  const db = new Database(":memory:")
  db.exec("create virtual table t using fts5(x, project unindexed, tokenize='porter unicode61')")
  const insert = db.prepare("insert into t (x, project) values (?, ?)")
  const pieces: Piece[] = []
  for await (const piece of piecesOf(set, home)) {
    pieces.push(piece)
    insert.run(piece.text, piece.project)
  }
  const find = db
    .prepare("select rowid from t where t match ? and (? is null or project = ?) order by bm25(t) limit ?")
    .pluck()
  const byMessage = set.unit === "message"
  return {
    rank: ({ text, project }) => {
      const only = project ?? null
      const rows = find.all(expression(text), only, only, DEPTH) as number[]
      return [...new Set(rows.map((row) => pieces[row - 1]!).map((piece) => (byMessage ? piece.id : piece.group)))]
    },
    close: () => db.close(),
  }
}

function expression(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []
  const telling = words.filter((word) => !STOPWORDS.has(word))
  const kept = [...new Set(telling.length > 0 ? telling : words)]
  return kept.length === 0 ? '""' : kept.map((word) => `"${word}"`).join(" OR ")
}

async function* piecesOf(set: EvalSet, home: EvalHome): AsyncGenerator<Piece> {
  if (Array.isArray(set.chats)) {
    for (const { id: group, project, docs } of set.chats) {
      if (set.unit === "message") for (const { id, text } of docs) yield { id, group, project, text }
      // A short dialogue is found best as one document, a long one by its best message.
      else yield { id: group, group, project, text: docs.map((doc) => doc.text).join("\n") }
    }
    return
  }
  for (let offset = 0; ; offset += 100) {
    const { rows } = await home.store.list({ limit: 100, offset })
    if (rows.length === 0) return
    for (const { ref } of rows) {
      for (const message of await home.store.messages(ref)) {
        if (message.copied) continue
        const text = messageText(message, "full")
        yield { id: `${ref.id}#${message.number}`, group: ref.id, project: "", text }
      }
    }
  }
}
