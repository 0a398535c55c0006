import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { build } from "esbuild"
import { errorLines, errorText } from "../src/core/error-text.ts"
import { INDEX_FILE, KNOWLEDGE_FILE, SPENDING_FILE } from "../src/core/formats.ts"
import { formatRef } from "../src/core/ref.ts"
import { topicWords } from "../src/core/words.ts"
import { openStore } from "../src/store/history/sqlite-history.ts"
import {
  CARD_TAG,
  cardOf,
  fieldsOf,
  type IndexedText,
  messageTags,
  TEXT_COLUMNS,
  tagsOf,
} from "../src/store/index/fields.ts"
import { MAX_CARD_FILES } from "../src/store/index/follow-feed.ts"
import { call, put, writer } from "../test/support/claude-code.ts"
import { generateCorpus, generator, makeVocabulary } from "./corpus.ts"
import { costOf, DEX, ROOT } from "./measure.ts"

// The data of the quick bench: transcripts, a home for each build that has read them, and the files for the floors.

const SOLVED = { conversations: 40, projects: 10, errorsEach: 3 }
const GENUINE = join(ROOT, "../shared/corpus/claude-code-real.tar.xz")

export type Build = { dex: string; home: string; env: Record<string, string> }
export type Prepared = {
  folder: string
  /** The folder of Claude Code's transcripts. */
  transcripts: string
  now: Build
  baseline?: Build
  floor: Floor
  conversation: string
  /** Errors that were solved in these transcripts. */
  failures: Failure[]
  /** Prompts that repeat what somebody wrote in one of these transcripts. */
  prompts: Prompt[]
  /** Words that some messages contain but most do not. */
  words: string[]
}
/** The bundled floors, and the files of `now` that they open. */
export type Floor = {
  program: string
  history: string
  index: string
  knowledge: string
  suggestions: string
  spending: string
  texts: string
  schema: string
}
export type Prompt = { project: string; prompt: string; match: string }
export type Failure = { project: string; command: string; error: string; match: string }

export async function prepare(
  folder: string,
  { messages, baseline }: { messages: number | "genuine"; baseline: string | undefined },
): Promise<Prepared> {
  const transcripts = join(folder, "transcripts")
  writeTranscripts(folder, transcripts, messages)
  const builds = [DEX, baseline].filter((dex) => dex !== undefined)
  const [now, before] = builds.map((dex, i): Build => {
    const home = join(folder, `home-${i}`)
    const env = { HOME: home, CLAUDE_CONFIG_DIR: transcripts, DEX_PROACTIVE_MODE: "speak", DEX_HOOK_MS: "900" }
    return { dex, home, env }
  })
  for (const { dex, home, env } of [now!, before].filter((one) => one !== undefined)) {
    mkdirSync(home)
    // The second one learns what a hook needs, the third creates the file of suggestions.
    for (const args of [["sync"], ["fix", "anything"], ["mute", "--list"]])
      await costOf({ args: [dex, ...args], env, cwd: home })
  }
  const file = (name: string) => join(now!.home, ".dex", name)
  const floor: Floor = {
    program: await buildFloor(),
    history: file("history.db"),
    index: file(INDEX_FILE),
    knowledge: file(KNOWLEDGE_FILE),
    suggestions: file("suggest.db"),
    spending: file(SPENDING_FILE),
    texts: join(folder, "texts"),
    schema: schemaOf(file(INDEX_FILE)),
  }
  const conversation = await writeTexts(floor)
  return {
    ...{ folder, transcripts, now: now!, floor, conversation },
    ...(before && { baseline: before }),
    failures: failuresIn(floor.knowledge),
    prompts: await promptsIn(floor.history),
    words: ordinaryWords(floor.index),
  }
}

/** Generated or genuine transcripts, and conversations in which errors were solved. */
export function writeTranscripts(folder: string, transcripts: string, messages: number | "genuine"): void {
  if (messages !== "genuine") generateCorpus(transcripts, { messages, seed: 11 })
  else {
    if (!existsSync(GENUINE)) throw new Error("The genuine corpus is not here: ../shared/corpus")
    execFileSync("tar", ["xf", GENUINE, "-C", folder])
    execFileSync("mv", [join(folder, "entireio-cli"), transcripts])
  }
  writeSolved(transcripts)
}

/** Bundled inside the tree, so that packages outside the bundle are found. */
async function buildFloor(): Promise<string> {
  const outfile = join(ROOT, "node_modules/.cache/dex-bench/floor.mjs")
  await build({
    ...{ entryPoints: [join(ROOT, "bench/floor.ts")], outfile, packages: "external" },
    ...{ bundle: true, format: "esm", platform: "node", logLevel: "error" },
  })
  return outfile
}

/** The declaration and setup of the table that dex searches. */
function schemaOf(index: string): string {
  const db = new Database(index, { readonly: true })
  const { sql } = db.prepare("select sql from sqlite_master where name = 'words'").get() as { sql: string }
  const settings = db.prepare("select k, v from words_config where k <> 'version'").all() as { k: string; v: number }[]
  db.close()
  return JSON.stringify([sql, ...settings.map(({ k, v }) => `insert into words (words, rank) values ('${k}', ${v})`)])
}

/** Writes the texts of dex's index for the floor of sync. Returns the ref of the longest conversation. */
async function writeTexts({ history, index, texts }: Floor): Promise<string> {
  const store = openStore(history)
  const db = new Database(index, { readonly: true })
  const projectId = db.prepare("select id from project where path = ?").pluck()
  const lines: string[] = []
  let longest = { ref: "", messages: 0 }
  for (const row of (await store.list({ limit: 1e6, offset: 0 })).rows) {
    if (row.message_count > longest.messages) longest = { ref: formatRef(row.ref), messages: row.message_count }
    const project = row.project === undefined ? undefined : (projectId.get(row.project) as number | undefined)
    const tags = tagsOf(row, project)
    const add = (fields: IndexedText, own: string) =>
      lines.push(JSON.stringify([...TEXT_COLUMNS.map((column) => fields[column]), `${tags} ${own}`]))
    const card = cardOf(row, await store.editedFiles(row.ref, MAX_CARD_FILES))
    if (card) add(card, CARD_TAG)
    const copied = new Set((await store.versions(row.ref)).filter((one) => one.copied).map(({ number }) => number))
    for (const message of await store.messages(row.ref))
      if (!copied.has(message.number)) add(fieldsOf(message), messageTags(message))
  }
  writeFileSync(texts, lines.join("\n"))
  store.close()
  db.close()
  return longest.ref
}

/** Throws unless two indexes have the same number of documents, each with the same number of words in each column. */
export function checkIndexedAlike(one: string, other: string): void {
  const [a, b] = [one, other].map((path) => {
    const db = new Database(path, { readonly: true })
    const sizes = db.prepare("select hex(sz) from words_docsize order by 1").pluck().all() as string[]
    db.close()
    return sizes
  }) as [string[], string[]]
  if (a.join() !== b.join())
    throw new Error(`dex indexed ${a.length} texts, and the floor of sync ${b.length}, or not the same ones.`)
}

/** Conversations in which commands failed, something was edited, and then they passed. */
function writeSolved(transcripts: string): void {
  const random = generator(21)
  const words = makeVocabulary(generator(12)).filter((word) => /^[a-z]{4,}$/.test(word))
  const word = () => words[Math.floor(40 + random() * 5000)]!
  for (let i = 0; i < SOLVED.conversations; i++) {
    const cwd = `/home/dev/solved-${i % SOLVED.projects}`
    const sessionId = `${String(i).padStart(8, "0")}-aaaa-4aaa-8aaa-aaaaaaaaaaaa`
    const session = writer({ sessionId, cwd }, `s${i}-`)
    session.prompt(`Make the ${word()} pass`)
    for (let j = 0; j < SOLVED.errorsEach; j++) {
      const [error, filePath] = [`TypeError: ${word()}.${word()} is not a function`, `${cwd}/src/${word()}.ts`]
      const ran = (id: string, output: string, is_error: boolean) => {
        session.answer(`m_${id}`, [call(id, "Bash", { command: "npm test" })])
        const toolUseResult = is_error ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
        session.result(id, output, { toolUseResult }, { is_error })
      }
      ran(`f${i}-${j}`, error, true)
      session.answer(`m_e${i}-${j}`, [
        call(`e${i}-${j}`, "Edit", { file_path: filePath, old_string: "a", new_string: "b" }),
      ])
      const structuredPatch = [
        { oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: [`-${word()}()`, `+${word()}()`] },
      ]
      session.result(`e${i}-${j}`, "Updated.", { toolUseResult: { filePath, structuredPatch } })
      ran(`p${i}-${j}`, "1 passed", false)
    }
    put(transcripts, `projects/${cwd.replaceAll("/", "-")}/${sessionId}.jsonl`, session.records)
  }
}

/** Errors that were solved, as they were printed, and the words to search for them. */
function failuresIn(path: string): Failure[] {
  const db = new Database(path, { readonly: true })
  const known = db
    .prepare(
      `select p.path as project, f.command, f.lines from fix f join project p on p.id = f.project_id
       where f.fixed_number is not null and p.path like '/home/dev/solved-%' order by f.id limit 200`,
    )
    .all() as { project: string; command: string; lines: string }[]
  db.close()
  if (known.length === 0) throw new Error("The history has no error that was solved.")
  return known.map(({ project, command, lines }) => {
    const error = (JSON.parse(lines) as string[]).join("\n")
    const texts = errorLines(error).slice(0, 10).map(errorText)
    const words = new Set(texts.flatMap(({ words, particulars }) => [...words, ...particulars]))
    return { project, command, error, match: anyOf([...words]) }
  })
}

const PROMPTS = 60
const PROMPT_WORDS = 50

/** The first words of the first prompts of some conversations. */
async function promptsIn(history: string): Promise<Prompt[]> {
  const store = openStore(history)
  const prompts: Prompt[] = []
  const { rows } = await store.list({ limit: 1e6, offset: 0 })
  const every = Math.max(1, Math.floor(rows.length / PROMPTS))
  for (const row of rows.filter((_, i) => i % every === 0)) {
    const [first] = await store.messages(row.ref)
    const said = first?.parts.find(({ type, origin }) => type === "text" && origin === "person")
    const words = said?.text.split(/\s+/).slice(0, PROMPT_WORDS) ?? []
    if (words.length < PROMPT_WORDS || row.project === undefined) continue
    const prompt = words.join(" ")
    prompts.push({ project: row.project, prompt, match: anyOf([...new Set(topicWords(prompt))]) })
  }
  store.close()
  return prompts
}

export function anyOf(words: string[]): string {
  return words.map((word) => `"${word.replaceAll('"', "")}"`).join(" OR ")
}

/** Words that people search for: neither the most common nor those that occur once. At most 120, always the same ones. */
export function ordinaryWords(index: string): string[] {
  const db = new Database(index, { readonly: true })
  db.exec("create virtual table temp.vocabulary using fts5vocab(main, words, row)")
  const documents = db.prepare("select count(*) from words_docsize").pluck().get() as number
  const found = db
    .prepare("select term from temp.vocabulary where doc between @least and @most and length(term) > 3 order by term")
    .pluck()
    .all({ least: Math.max(3, documents / 2000), most: documents / 20 }) as string[]
  db.close()
  const plain = found.filter((word) => /^[a-z]+$/.test(word) && !word.startsWith("xx"))
  const every = Math.max(1, Math.floor(plain.length / 120))
  return plain.filter((_, i) => i % every === 0).slice(0, 120)
}
