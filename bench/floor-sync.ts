// The least that any tool must do with these transcripts: read every byte, parse every line, and put the text into a
// bare FTS5 table. Prints the bytes of text it indexed. Arguments: the folder, the database.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"

const [folder, path] = process.argv.slice(2) as [string, string]
const db = new Database(path)
db.pragma("journal_mode = wal")
db.pragma("synchronous = normal")
db.exec("create virtual table t using fts5(x)")
const insert = db.prepare("insert into t (x) values (?)")
let bytes = 0

type Loose = Record<string, unknown>

db.exec("begin immediate")
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith(".jsonl")) continue
  for (const line of readFileSync(join(entry.parentPath, entry.name), "utf8").split("\n")) {
    if (line === "") continue
    let record: Loose
    try {
      record = JSON.parse(line) as Loose
    } catch {
      continue // the corpus has seven genuinely damaged lines
    }
    const text = textOf(record)
    if (text === "") continue
    bytes += Buffer.byteLength(text)
    insert.run(text)
  }
}
db.exec("commit")
db.close()
console.log(bytes)

/** What was said in a record: the same words that dex keeps. */
function textOf(record: Loose): string {
  const data = record.data as Loose | undefined
  if (record.type === "progress") return data?.type === "agent_progress" ? textOf((data.message ?? {}) as Loose) : ""
  if (record.type !== "user" && record.type !== "assistant") return ""
  const content = (record.message as Loose | undefined)?.content
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map(blockText).filter(Boolean).join("\n")
}

function blockText(block: Loose): string {
  if (typeof block.text === "string") return block.text
  if (typeof block.thinking === "string") return block.thinking
  if (block.type === "tool_use") return JSON.stringify(block.input)
  if (typeof block.content === "string") return block.content
  return Array.isArray(block.content) ? block.content.map((inner: Loose) => inner.text ?? "").join("\n") : ""
}
