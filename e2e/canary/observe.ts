import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs"
import { join, relative } from "node:path"
import { isUnreadable, type Unit } from "../../src/agents/kit/connector.ts"
import { columnsOf, withForeignDatabase } from "../../src/agents/kit/foreign-sqlite.ts"
import { agentOf } from "../../src/agents/registry.ts"
import { isRecord, parseObject, type RawRecord, record, string } from "../../src/core/record.ts"
import type { Agent } from "../agents.ts"
import type { setUpMachine } from "../machine.ts"
import type { Script } from "../model.ts"

/** What an agent wrote in its home, and what dex read of it. */
export type Observation = {
  /** Paths below the home. */
  files: string[]
  /** Those of them that dex reads as conversations. */
  read: string[]
  /** Those that contain words of the conversation. */
  telling: string[]
  records: Record<string, number>
  unknown: Record<string, number>
  skipped: Record<string, number>
  unreadable: string[]
  /** Rows of the tables that dex does not know. */
  tables: Record<string, number>
  /** The columns of the tables in the databases that dex reads. */
  columns: Record<string, string[]>
  /** What was said or done, and is not in dex. */
  lost: string[]
}

type Machine = Awaited<ReturnType<typeof setUpMachine>>

/** The words of the scripted conversation. Each is in one text only. */
const WORDS = {
  prompt: "quillmarsh",
  text: "brindlefen",
  failed: "tarnwick",
  output: "larkspire",
  file: "wexcombe",
  answer: "ospreyholt",
}

export function scriptFor(agent: Agent, project: string): Script {
  return {
    prompt: `Find out why the ${WORDS.prompt} importer fails`,
    steps: [
      { text: `I look at the ${WORDS.text} log first.`, call: agent.shell(`cat ${WORDS.failed}.log; exit 3`) },
      { call: agent.shell(`echo 12 rows of ${WORDS.output}`) },
      { call: agent.write(join(project, `${WORDS.file}.txt`), "one\ntwo\n") },
      { text: `The ${WORDS.answer} queue drops what comes twice in a second.` },
    ],
  }
}

/** Reads with dex what the agent wrote, and compares. */
export async function observe(agent: Agent, machine: Machine, before: ReadonlySet<string>): Promise<Observation> {
  const written = filesIn(machine.home).filter((path) => !before.has(path))
  const telling = written.filter((path) => containsWord(join(machine.home, path)))
  const { units, records, columns } = await readWithConnector(agent, machine.home)
  await machine.dex("sync")
  const { sources } = await machine.json("doctor", "sources")
  const source = sources.find((one: { source: string }) => one.source === agent.name)
  return {
    files: [...new Set(written.map(withoutSuffix))],
    read: [...new Set(units.map(({ path }) => relative(machine.home, path)))],
    telling: [...new Set(telling.map(withoutSuffix))],
    records,
    unknown: source.unknown,
    skipped: source.skipped,
    unreadable: source.unreadable.map(
      ({ path, reason }: { path: string; reason: string }) => `${relative(machine.home, path)}: ${reason}`,
    ),
    tables: Object.assign({}, ...(source.unknown_tables ?? []).map(({ tables }: { tables: object }) => tables)),
    columns,
    lost: await lostIn(agent, machine),
  }
}

/** All files below a folder, except dex's own. */
export function filesIn(home: string): string[] {
  return readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(home, join(entry.parentPath, entry.name)))
    .filter((path) => !path.startsWith(".dex/"))
    .sort()
}

/** A database and the files next to it count once. */
function withoutSuffix(path: string): string {
  return path.replace(/-(?:wal|shm|journal)$/, "")
}

function containsWord(path: string): boolean {
  const content = readFileSync(path)
  return Object.values(WORDS).some((word) => content.includes(word))
}

async function readWithConnector({ name }: Agent, home: string) {
  const connector = await agentOf(name)!.connector!()
  const units = connector
    .roots({ home, env: {}, platform: process.platform })
    .flatMap((root) => [...connector.discover(root, () => false)])
    .filter((unit): unit is Unit => !isUnreadable(unit))
  const records: Record<string, number> = {}
  const columns: Record<string, string[]> = {}
  for (const unit of units) {
    for (const record of (await connector.read(unit)).records)
      records[kindOf(record)] = (records[kindOf(record)] ?? 0) + 1
    if (isDatabase(unit.path))
      withForeignDatabase(unit.path, (db) => {
        for (const table of connector.tables ?? []) {
          const names = [...columnsOf(db, table)]
          if (names.length > 0) columns[table] = names
        }
      })
  }
  return { units, records, columns }
}

/** The kind of a record in the words of the agent: its type, and that of what it contains. Without a type, its first field. */
function kindOf(fields: RawRecord): string {
  const own = string(fields.table) ?? string(fields.type) ?? string(fields.role) ?? string(fields.kind)
  const contained = [
    fields.payload,
    fields.event,
    fields.data,
    record(fields.params)?.update,
    fields.message,
    fields.attachment,
  ]
    .map((value) => (typeof value === "string" ? parseObject(value) : value))
    .find(isRecord)
  const inner = [fields.subtype, contained?.sessionUpdate, contained?.type, contained?.role].find((value) =>
    string(value),
  )
  return [...new Set([own ?? Object.keys(fields)[0] ?? "(empty)", inner ?? []].flat())].join("/")
}

function isDatabase(path: string): boolean {
  const start = Buffer.alloc(15)
  const file = openSync(path, "r")
  try {
    readSync(file, start, 0, start.length, 0)
  } finally {
    closeSync(file)
  }
  return start.toString("latin1") === "SQLite format 3"
}

type Message = {
  parts: { type: string; origin: string; text: string }[]
  effects?: { type: string; failed?: boolean; path?: string; added?: number }[]
}

/** What the script said and did, and dex does not show or find. */
async function lostIn(agent: Agent, machine: Machine): Promise<string[]> {
  const { conversations } = await machine.json("list", "--all", "--source", agent.name)
  const messages: Message[] = []
  for (const { id } of conversations as { id: string }[])
    messages.push(...(await machine.json("show", id, "--messages", "1-200")).messages)
  const parts = messages.flatMap((message) => message.parts)
  const effects = messages.flatMap((message) => message.effects ?? [])
  const has = (type: string, origin: string | undefined, word: string) =>
    parts.some(
      (part) => part.type === type && (origin === undefined || part.origin === origin) && part.text.includes(word),
    )
  const file = join(machine.projectOf(agent), `${WORDS.file}.txt`)
  const lost = Object.entries({
    "the prompt, as the person's": has("text", "person", WORDS.prompt),
    "the text before the first call": has("text", "agent", WORDS.text),
    "the first command": has("tool_call", undefined, WORDS.failed),
    "the error of the first command": has("tool_result", undefined, `${WORDS.failed}.log: No such file`),
    "that the first command failed": effects.some(({ type, failed }) => type === "command" && failed === true),
    "the output of the second command": has("tool_result", undefined, `12 rows of ${WORDS.output}`),
    "the new file and its lines": effects.some(
      ({ type, path, added }) => type === "file" && path === file && added === 2,
    ),
    "the answer": has("text", "agent", WORDS.answer),
  }).flatMap(([what, isThere]) => (isThere ? [] : [`dex show: ${what}`]))
  for (const word of [WORDS.prompt, WORDS.text, WORDS.output, WORDS.answer]) {
    const { results } = await machine.json("search", word, "--source", agent.name)
    if (results.length === 0) lost.push(`dex search: ${word}`)
  }
  return lost
}
