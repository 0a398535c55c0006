// The minimum that a command must do, without dex: start Node, open the same files with the same SQLite, run the bare query.
// Arguments: which floor, then what it needs. `npm run bench` bundles this file first, like dex.
import { readdirSync, readFileSync, statSync } from "node:fs"
import module from "node:module"
import { join } from "node:path"
import type { LanguageId } from "../src/code/languages.ts"

module.enableCompileCache?.() // like dex

const floors: Record<string, (...args: string[]) => unknown> = {
  nothing: () => {},
  sync,
  list: async (history) => console.log(JSON.stringify(newest(await open(history!), 20))),
  show: async (history, id) => console.log((await textsOf(await open(history!), id!)).join("\n")),
  search: async (index, match) => console.log(matching(await open(index!), match!).length),
  usage: async (spending) => console.log(JSON.stringify(spent(await open(spending!)))),
  hook,
  "hook-prompt": hookAtPrompt,
  initialize: () => answerLines(async () => ({})),
  "first-search": (index, match) => answerLines(async () => matching(await open(index!), match!)),
  home: (history) => serve(async () => newest(await open(history!), 10).map((row) => JSON.stringify(row))),
  reading: (history, id) => serve(async () => textsOf(await open(history!), id!)),
  code: parseCode,
  documents: parseDocuments,
}

const [name, ...args] = process.argv.slice(2)
await floors[name!]!(...args)

async function open(path: string, readonly = true) {
  const { default: Database } = await import("better-sqlite3")
  return new Database(path, { readonly })
}
type Db = Awaited<ReturnType<typeof open>>

/**
 * Reads every byte of the transcripts, parses every line, and puts exactly the texts that dex indexes into one FTS5 table. Both
 * tables are declared alike. The texts are in a file: selecting them is dex's own work, indexing them is not.
 */
async function sync(folder = "", texts = "", schema = "", database = ""): Promise<void> {
  let records = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".jsonl")) continue
    for (const line of readFileSync(join(entry.parentPath, entry.name), "utf8").split("\n")) {
      if (line === "") continue
      try {
        JSON.parse(line)
        records++
      } catch {} // genuine transcripts have damaged lines
    }
  }
  const db = await open(database, false)
  db.pragma("journal_mode = wal")
  db.pragma("synchronous = normal")
  for (const statement of JSON.parse(schema) as string[]) db.exec(statement)
  const insert = db.prepare("insert into words values (?, ?, ?, ?, ?, ?)")
  db.exec("begin immediate")
  for (const line of readFileSync(texts, "utf8").split("\n"))
    if (line !== "") insert.run(...(JSON.parse(line) as string[]))
  db.exec("commit")
  db.close()
  console.log(records)
}

function newest(db: Db, count: number): unknown[] {
  return db
    .prepare(
      `select c.source, c.native_id, c.title, c.ended_at, c.message_count, c.estimated_tokens, p.path
       from conversation c left join project p on p.id = c.project_id order by c.ended_at desc limit ?`,
    )
    .all(count)
}

async function textsOf(db: Db, id: string): Promise<string[]> {
  const { zstdDecompressSync } = await import("node:zlib")
  const key = db.prepare("select id from conversation where source || ':' || native_id = ?").pluck().get(id)
  db.prepare("select * from message where conversation_id = ? order by position").all(key)
  const bodies = db
    .prepare("select data from body where conversation_id = ? order by chunk")
    .pluck()
    .all(key) as Buffer[]
  return bodies.flatMap((data) =>
    zstdDecompressSync(data)
      .toString("utf8")
      .split("\n")
      .map((line) => textIn(JSON.parse(line))),
  )
}

function textIn(value: unknown): string {
  if (Array.isArray(value)) return value.map(textIn).join("\n")
  if (typeof value !== "object" || value === null) return ""
  const { text, parts } = value as { text?: string; parts?: unknown }
  return text ?? textIn(parts)
}

function matching(db: Db, match: string): unknown[] {
  return db
    .prepare("select rowid, bm25(words) as score from words where words match ? order by score limit 60")
    .all(match)
}

function spent(db: Db): unknown[] {
  return db
    .prepare(
      `select date(at / 1000, 'unixepoch') as day, by_id, sum(input), sum(output), sum(cache_read), sum(cache_write_other)
       from spent group by day, by_id`,
    )
    .all()
}

/** Reads its input, opens the same two files and runs the same query. */
async function hook(knowledge = "", suggestions = "", match = "", project = ""): Promise<void> {
  JSON.parse(readFileSync(0, "utf8"))
  const rows = (await open(knowledge))
    .prepare(
      `select f.*, bm25(fix_words) as score, c.source, c.native_id, c.root
       from fix_words join fix f on f.id = fix_words.rowid join conversation c on c.id = f.conversation_id
         join project p on p.id = f.project_id
       where fix_words match ? and p.path = ? order by score limit 200`,
    )
    .all(match, project)
  const offered = await open(suggestions, false)
  offered.prepare("select * from mute").all()
  offered.prepare("select count(*) from suggestion where session = ?").get("bench")
  console.log(rows.length)
}

/** Reads its input, runs the same query, and reads the conversation that it finds. */
async function hookAtPrompt(knowledge = "", history = "", match = "", project = ""): Promise<void> {
  JSON.parse(readFileSync(0, "utf8"))
  const found = (await open(knowledge))
    .prepare(
      `with found as materialized (select rowid as id, -bm25(turn_words) as score from turn_words where turn_words match ?)
       select c.source, c.native_id, max(found.score) as score
       from found join turn t on t.id = found.id join conversation c on c.id = t.conversation_id
         join project p on p.id = c.project_id
       where p.path = ? group by c.id order by score desc`,
    )
    .all(match, project) as { source: string; native_id: string }[]
  const [first] = found
  if (first) await textsOf(await open(history), `${first.source}:${first.native_id}`)
  console.log("worked on this before", found.length)
}

/** JSON-RPC over stdio, with nothing but `answer` for a tool call. */
async function answerLines(answer: () => Promise<unknown>): Promise<void> {
  const { createInterface } = await import("node:readline")
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method } = JSON.parse(line) as { id?: number; method: string }
    if (id === undefined) continue
    const result = method === "tools/call" ? await answer() : { protocolVersion: "2025-11-25", capabilities: {} }
    console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
  }
}

async function serve(lines: () => Promise<string[]>): Promise<void> {
  const { createServer } = await import("node:http")
  const escaped = (line: string) => `<p>${line.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</p>`
  // The first request only logs in, as with dex.
  const page = async () => (await lines()).map(escaped).join("\n")
  const server = createServer(async ({ url }, response) => response.end(url === "/enter" ? "" : await page()))
  server.listen(0, "127.0.0.1", () =>
    console.log(`http://127.0.0.1:${(server.address() as { port: number }).port}/enter`),
  )
  process.once("SIGTERM", () => process.exit(0))
}

async function parseCode(folder = ""): Promise<void> {
  const { Language, Parser } = await import("web-tree-sitter")
  const { languageOf, MAX_CODE_BYTES, whyNotCode } = await import("../src/code/languages.ts")
  const { grammarFile } = await import("../src/code/parse.ts")
  const { listCodeFiles } = await import("../src/ingest/project-code.ts")
  await Parser.init()
  const parser = new Parser()
  const languages = new Map<LanguageId, InstanceType<typeof Language>>()
  let bytes = 0
  for (const path of (await listCodeFiles(folder)).paths) {
    const file = join(folder, path)
    if (statSync(file).size > MAX_CODE_BYTES) continue
    const text = readFileSync(file, "utf8")
    if (whyNotCode(text)) continue
    const id = languageOf(path)!
    const language = languages.get(id) ?? (await Language.load(grammarFile(id)))
    languages.set(id, language)
    parser.setLanguage(language)
    parser.parse(text)!.delete()
    bytes += text.length
  }
  console.log(bytes)
}

async function parseDocuments(folder = ""): Promise<void> {
  const { fromMarkdown } = await import("mdast-util-from-markdown")
  const { gfmFromMarkdown } = await import("mdast-util-gfm")
  const { gfm } = await import("micromark-extension-gfm")
  let nodes = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const options = { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] }
    nodes += fromMarkdown(readFileSync(join(entry.parentPath, entry.name), "utf8"), options).children.length
  }
  console.log(nodes)
}
