import { execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  utimesSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { createDex } from "../../src/app/dex.ts"
import { runTool } from "../../src/app/run.ts"
import { messageText } from "../../src/core/format.ts"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { formatRef, type Ref } from "../../src/core/ref.ts"
import { readAs } from "../../src/core/schema.ts"
import type { Tool } from "../../src/core/tool.ts"
import { parseQuery } from "../../src/search/query.ts"
import { searchHistory } from "../../src/search/search.ts"
import { SUMMED_TABLES } from "../../src/store/history/rot/sums.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { readIndex } from "../../src/store/index/search-index.ts"
import { removeDatabase } from "../../src/store/sqlite/database.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { doctor } from "../../src/tools/doctor/doctor.ts"
import { handover } from "../../src/tools/handover/handover.ts"
import { list } from "../../src/tools/list/list.ts"
import { resume } from "../../src/tools/resume/resume.ts"
import { search as searchTool } from "../../src/tools/search/search.ts"
import { scan, timeline } from "../../src/tools/show/forms.ts"
import { show } from "../../src/tools/show/show.ts"
import { sources } from "../../src/tools/sources/sources.ts"
import { stats } from "../../src/tools/stats/stats.ts"
import { checkRows } from "../support/check-rows.ts"
import { dex } from "../support/dex.ts"
import { byteIn, bytesOf, countBytes, type FileBytes, flipBitAt, type StoredRow } from "../support/sqlite-bytes.ts"
import { tempDir } from "../support/temp.ts"

// These tests flip bits on disk in everything that is stored. Commands must show what was written, or omit it and say so, and
// doctor must notice every flip.

// A flipped bit may turn any value into another one, so only the columns of queries are checked here.
checkRows({ values: false })

const FLIPS = Number(process.env.DEX_FLIPS ?? 60)
const PAGE_FLIPS = Number(process.env.DEX_PAGE_FLIPS ?? 20)
const INDEX_FLIPS = Number(process.env.DEX_INDEX_FLIPS ?? 30)
const CLI_FLIPS = Number(process.env.DEX_CLI_FLIPS ?? 2)
const SEED = Number(process.env.DEX_SEED ?? 1)

const CORPUS = fileURLToPath(new URL("../../../shared/corpus/claude-code-real.tar.xz", import.meta.url))
const isGenuine = process.env.DEX_ROT_GENUINE === "1" && existsSync(CORPUS)
const AT_ONCE = isGenuine ? 100 : 10
const QUERIES = isGenuine
  ? [
      ...["refresh token race", "git commit hook", "checkpoint session", "strategy manual commit", "worktree"],
      ...["test failure timeout", "golang interface", "shadow branch", "transcript parse error", "permission denied"],
      ...["nil pointer", "json unmarshal", "flaky integration test", "rebase conflict", "settings local json"],
      ...["telemetry", "cobra command", "e2e agent", "condense logs", "attribution lines"],
    ]
  : ["zebrafinch", "narwhal and quokka", "npm test", "the", "auth token"]

let home: string
let history: string
let hidden: string
let bytes: FileBytes
let random: () => number
const say = (text: string) => console.log(text)

beforeAll(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "dex-rot-")))
  history = join(home, ".dex", "history.db")
  random = generator(SEED)
  say(`rot: seed ${SEED}, in ${isGenuine ? "the genuine history" : "a generated history"}`)
  if (isGenuine) {
    execFileSync("tar", ["xf", CORPUS, "-C", home])
    renameSync(join(home, "entireio-cli"), join(home, ".claude"))
  } else makeSources(home)
  mkdirSync(join(home, "docs"))
  cpSync(fileURLToPath(new URL("../../docs/words.md", import.meta.url)), join(home, "docs", "words.md"))
  setTimes(home)
  for (const args of [["sync"], ["docs", "add", join(home, "docs")], ["list", "--all", "-l", "500", "--json"]])
    expect((await dex(home, args)).code).toBe(0)
  // The history has forgotten and private conversations, and nothing is left in its log.
  const listed = JSON.parse((await dex(home, ["list", "--all", "-l", "500", "--json"])).stdout)
  const projects: string[] = listed.conversations.map(({ project }: { project: string }) => project)
  const rare = [...new Set(projects)].sort((a, b) => count(projects, a) - count(projects, b))
  const sizes: number[] = listed.conversations.map((one: { estimated_tokens: number }) => one.estimated_tokens)
  // Forgetting the largest conversation leaves free pages.
  for (const one of new Set([listed.conversations.at(-1), listed.conversations[sizes.indexOf(Math.max(...sizes))]]))
    expect((await dex(home, ["forget", one.id, "--yes"])).code).toBe(0)
  hidden = rare[0]!
  await dex(home, ["private", hidden])
  for (let i = 0; i < 2; i++) expect((await dex(home, ["sync"])).code).toBe(0)
  const db = openSqlite(history)
  db.pragma("wal_checkpoint(truncate)")
  db.close()
  bytes = bytesOf(history, SUMMED_TABLES)
}, 600_000)

afterAll(() => rmSync(home, { recursive: true, force: true }))

test(
  "flips inside blocks and rows show nothing wrong, fail only commands that need the damaged data, and are all noticed by doctor",
  async () => {
    const clean = await cleanAnswers()
    const counts = {
      flips: 0,
      right: 0,
      left_out: 0,
      wrong: [] as string[],
      failed: [] as string[],
      unnoticed: [] as string[],
    }
    while (counts.flips < FLIPS) {
      const flips = chosenRows(Math.min(AT_ONCE, FLIPS - counts.flips)).map(flipIn)
      for (const { at, bit } of flips) flipBitAt(history, at, bit)
      try {
        await judge(clean, flips, counts)
      } finally {
        for (const { at, bit } of flips) flipBitAt(history, at, bit)
        rmSync(join(home, ".dex", "damaged"), { force: true })
      }
      counts.flips += flips.length
      if (isGenuine) say(`${counts.flips} flips in rows and blocks: ${JSON.stringify(counts).slice(0, 2000)}`)
    }
    const { wrong, failed, unnoticed } = counts
    say(
      `rot in rows and blocks: ${counts.flips} flips; ${counts.right} answers as before, ${counts.left_out} with something left out and named, ${wrong.length} wrong, ${failed.length} failed; ${counts.flips - unnoticed.length} noticed by doctor`,
    )
    expect({ wrong, failed, unnoticed }).toEqual({ wrong: [], failed: [], unnoticed: [] })
    expect(await sound()).toBe(true)
  },
  24 * 3_600_000,
)

test(
  "flips in SQLite's own pages are named by doctor and repaired from the agents' files, or the file is refused and unchanged",
  async () => {
    const keep = tempDir()
    cpSync(join(home, ".dex"), keep, { recursive: true })
    const rows = rowsOf(history)
    const before = await kept(home)
    const counts = { flips: 0, harmless: 0, repaired: 0, refused: 0 }
    const unnamed: string[] = []
    const lost: string[] = []
    const kinds = [...bytes.structure.keys()]
    for (; counts.flips < PAGE_FLIPS; counts.flips++) {
      const kind = kinds[counts.flips % kinds.length]!
      const places = bytes.structure.get(kind)!
      const where = { at: byteIn(places, Math.floor(random() * countBytes(places))), bit: Math.floor(random() * 8) }
      const name = `${kind}: byte ${where.at} (page ${Math.floor(where.at / 4096) + 1}), bit ${where.bit}`
      flipBitAt(history, where.at, where.bit)
      const damaged = copyOf(history)
      if (await sound()) {
        if (isSame(rows, history)) counts.harmless++
        else unnamed.push(name)
      } else {
        const problem = await repairedBy(damaged, before)
        if (problem === "refused") counts.refused++
        else if (problem === undefined) counts.repaired++
        else lost.push(`${name}: ${problem}`)
      }
      removeDatabase(damaged)
      rmSync(join(home, ".dex"), { recursive: true })
      cpSync(keep, join(home, ".dex"), { recursive: true })
      if (isGenuine) say(`${name}: ${JSON.stringify({ ...counts, unnamed, lost })}`)
    }
    say(
      `rot in SQLite's pages (${kinds.join(", ")}): ${counts.flips} flips; ${counts.harmless} changed nothing, ${counts.repaired} repaired, ${counts.refused} refused and left as they are; ${unnamed.length} not named, ${lost.length} with a loss`,
    )
    expect({ unnamed, lost }).toEqual({ unnamed: [], lost: [] })
    expect(counts.repaired).toBeGreaterThan(counts.refused)
  },
  24 * 3_600_000,
)

test(
  "after flips in the index a search finds the right rows, or its answer says that the index is damaged",
  async () => {
    const path = join(home, ".dex", INDEX_FILE)
    const store = openStore(history)
    const size = execSize(path)
    const answers = async () => {
      const index = readIndex(path)
      const found: (string | "damaged")[] = []
      for (const text of QUERIES.slice(0, 10)) {
        // A search that finds damage marks the index, and later searches do not use it.
        if (index === "damaged" || found.includes("damaged")) found.push("damaged")
        else {
          const input = {
            query: parseQuery(text),
            by: "conversation" as const,
            limit: 10,
            offset: 0,
            among: "history" as const,
          }
          const outcome = await searchHistory(store, typeof index === "string" ? undefined : index, input)
          const rows = outcome.hits.map(({ row, number, snippet }) => [formatRef(row.ref), number, snippet])
          found.push(outcome.index_is_damaged ? "damaged" : outcome.mode === "scan" ? "none" : JSON.stringify(rows))
        }
      }
      if (typeof index !== "string") index.close()
      return found
    }
    const clean = await answers()
    const counts = { flips: 0, same: 0, said: 0, wrong: [] as string[] }
    for (; counts.flips < INDEX_FLIPS; counts.flips++) {
      const where = { at: Math.floor(random() * size), bit: Math.floor(random() * 8) }
      flipBitAt(path, where.at, where.bit)
      try {
        const found = await answers()
        const different = found.filter((rows, i) => rows !== clean[i])
        if (different.length === 0) counts.same++
        else if (different.every((rows) => rows === "damaged" || rows === "none")) counts.said++
        else counts.wrong.push(`byte ${where.at}, bit ${where.bit}`)
        if (isGenuine && counts.flips % 50 === 49) say(`flips in the index: ${JSON.stringify(counts)}`)
      } finally {
        flipBitAt(path, where.at, where.bit)
        for (const end of ["-wal", "-shm", ".damaged"]) rmSync(path + end, { force: true })
      }
    }
    store.close()
    say(
      `rot in the index: ${counts.flips} flips, ${clean.length} searches each; ${counts.same} the same rows, ${counts.said} said to be damaged, ${counts.wrong.length} wrong`,
    )
    expect(counts.wrong).toEqual([])
  },
  24 * 3_600_000,
)

test(
  "after flips a dex command fails only if it needs the damaged data, and one sync restores everything",
  async () => {
    const before = await kept(home)
    const wrong: string[] = []
    for (let i = 0; i < CLI_FLIPS; i++) {
      const own = tempDir()
      // If file times are unchanged, sync reads only files whose data is damaged; otherwise it reads every file.
      cpSync(home, own, { recursive: true, preserveTimestamps: i % 2 === 0 })
      const [row] = chosenRows(1)
      const { at, bit, name, refs } = flipIn(row!)
      flipBitAt(join(own, ".dex", "history.db"), at, bit)
      const problems = await restoredBySync(own, refs[0], before)
      wrong.push(...problems.map((problem) => `${name}: ${problem}`))
      rmSync(own, { recursive: true, force: true })
    }
    say(`rot met by the program: ${CLI_FLIPS} flips, ${wrong.length} problems`)
    expect(wrong).toEqual([])
  },
  24 * 3_600_000,
)

/** Problems that appear when commands meet the damage, or remain after a sync and a repair. */
async function restoredBySync(own: string, ref: string | undefined, before: string): Promise<string[]> {
  const problems: string[] = []
  const doctorRun = await dex(own, ["doctor"])
  if (doctorRun.code !== 1) problems.push(`doctor ends with ${doctorRun.code}`)
  for (const args of [["search", QUERIES[0]!], ["list"], ["stats"], ...(ref === undefined ? [] : [["show", ref]])]) {
    const { code, stderr } = await dex(own, args)
    if (code !== 2 || NAMES_DAMAGE.test(stderr)) continue
    // A private conversation is not shown here, damaged or not.
    const usual = await dex(home, args)
    if (usual.code !== 2 || usual.stderr !== stderr) problems.push(`${args.join(" ")} fails: ${stderr}`)
  }
  const sync = await dex(own, ["sync"])
  if (sync.code !== 0) problems.push(`sync ends with ${sync.code}: ${sync.stderr}`)
  const { checks } = JSON.parse((await dex(own, ["doctor", "--repair", "--json"])).stdout)
  for (const { name, status, message } of checks)
    if (name === "history" && status === "problem") problems.push(`after the repair: ${message}`)
  const now = await kept(own)
  if (now !== before) problems.push(`not all is back: ${difference(before, now)}`)
  return problems
}

const NAMES_DAMAGE = /history\.db is damaged in places/

type Flip = { at: number; bit: number; name: string; table: string; refs: string[] }
/** The answers before any damage. `texts` has every message text, each on one line. */
type Clean = {
  global: Map<string, string>
  strings: Set<string>
  of: Map<string, string>
  texts: string[]
  words?: Set<string>
}

function dateOf(at: number, length: number): string {
  const iso = new Date(at).toISOString()
  return length === 24 ? iso : `${iso.slice(0, 19)}Z`
}

/** The parts of a snippet between its cuts, as they are in the original text. */
function piecesOf(snippet: string): string[] {
  return oneLine(snippet.replaceAll("**", ""))
    .split("…")
    .map((piece) => piece.trim())
}

/** The words of an answer, except numbers and times, that were in no answer or message before the damage. */
function newWords(text: string, clean: Clean, before: string): string[] {
  clean.words ??= new Set([...clean.texts, ...clean.strings].flatMap(wordsIn))
  const own = new Set(wordsIn(before.replaceAll("\\n", "\n")))
  const fresh = wordsIn(text).filter((word) => !clean.words!.has(word) && !own.has(word) && !COUNTED.test(word))
  // A line that begins with the day is cut earlier, possibly inside a word. The original text must then continue that word.
  const cut = oneLine(text).split("…").slice(0, -1)
  return fresh.filter(
    (word) =>
      !cut.some((piece) => piece.endsWith(word) && clean.texts.some((said) => said.includes(piece.slice(-CUT)))),
  )
}

/** The number of characters before a cut that are compared. */
const CUT = 24

/** Numbers and times, and the word of a handover that depends on one. */
const COUNTED = /^(?:[\dTZ]+|calls)$/

const wordsIn = (text: string): string[] => text.match(/[\p{L}\p{N}_]+/gu) ?? []

function oneLine(text: string): string {
  return text.replaceAll("**", "").replace(/\s+/g, " ")
}

const GLOBAL: [name: string, tool: Tool<never>, input: unknown][] = [
  ["list", list as never, { all: true, limit: 500 }],
  ["stats", stats as never, {}],
  ["sources", sources as never, {}],
  ...QUERIES.slice(0, 4).map((query) => [`search ${query}`, searchTool, { query }] as never),
]
const OF_ONE: [name: string, tool: Tool<never>, input: (ref: string) => unknown][] = [
  ["show", show as never, (ref) => ({ ids: [ref], format: "full" })],
  ["timeline", timeline as never, (id) => ({ id })],
  ["scan", scan as never, (id) => ({ id })],
  ["handover", handover as never, (id) => ({ id, max_tokens: 20_000 })],
  ["resume", resume as never, (id) => ({ id })],
]

async function asked(
  tool: Tool<never>,
  input: unknown,
): Promise<{ output: string; notes: string[] } | { error: string }> {
  const dex = createDex({ env: { HOME: home, TZ: "UTC" }, cwd: home, version: "0" })
  try {
    const checked = readAs(tool.input, input)
    if ("wrong" in checked) throw new Error(checked.wrong)
    const { output, notes } = await runTool(tool, dex, checked.ok)
    return { output: JSON.stringify(output), notes }
  } catch (error) {
    return { error: String((error as Error).stack) }
  } finally {
    dex.close()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function cleanAnswers(): Promise<Clean> {
  const clean: Clean = { global: new Map(), strings: new Set(), of: new Map(), texts: [] }
  const store = openStore(history)
  const times: (number | undefined)[] = []
  const all = { limit: 100_000, offset: 0, inside: home }
  const rows = [...(await store.list(all)).rows, ...(await store.list({ ...all, collections: ["docs"] })).rows]
  for (const { ref, title, started_at, ended_at } of rows) {
    clean.texts.push(oneLine(title?.text ?? ""))
    times.push(started_at, ended_at)
    for (const message of await store.messages(ref)) {
      clean.texts.push(oneLine(messageText(message, "full")))
      times.push(message.at)
    }
  }
  for (const at of times) if (at !== undefined) for (const length of [20, 24]) clean.strings.add(dateOf(at, length))
  store.close()
  for (const [name, tool, input] of GLOBAL) {
    const answer = await asked(tool, input)
    if ("error" in answer) throw new Error(`${name}: ${answer.error}`)
    expect(answer.notes).toEqual([])
    clean.global.set(name, answer.output)
    collect(JSON.parse(answer.output), clean.strings)
  }
  // If a result is left out, the next one is shown instead.
  for (const query of QUERIES) {
    const answer = await asked(searchTool as never, { query, limit: 100 })
    if ("error" in answer) throw new Error(`search ${query}: ${answer.error}`)
    collect(JSON.parse(answer.output), clean.strings)
  }
  return clean
}

/** A command's answer about one conversation without damage. The flips are undone while it runs. Each answer is cached. */
async function cleanOf(clean: Clean, name: string, ref: string, flips: Flip[]): Promise<string> {
  const known = clean.of.get(`${name} ${ref}`)
  if (known !== undefined) return known
  const [, tool, input] = OF_ONE.find(([one]) => one === name)!
  for (const { at, bit } of flips) flipBitAt(history, at, bit)
  const answer = await asked(tool, input(ref))
  for (const { at, bit } of flips) flipBitAt(history, at, bit)
  const output = "error" in answer ? `error ${answer.error.split("\n")[0]}` : answer.output
  clean.of.set(`${name} ${ref}`, output)
  return output
}

async function judge(
  clean: Clean,
  flips: Flip[],
  counts: { right: number; left_out: number; wrong: string[]; failed: string[]; unnoticed: string[] },
): Promise<void> {
  const names = flips.map(({ name }) => name).join(", ")
  const compare = (what: string, answer: Awaited<ReturnType<typeof asked>>, before: string) => {
    if ("error" in answer) {
      if (before.startsWith("error") && answer.error.startsWith(before.slice(6))) return counts.right++
      // The requested conversation itself is damaged, and the error says so.
      if (NAMES_DAMAGE.test(answer.error)) return counts.left_out++
      return counts.failed.push(`${what}: ${answer.error} (${names})`)
    }
    if (answer.output === before) return counts.right++
    const known = new Set(clean.strings)
    if (!before.startsWith("error")) collect(JSON.parse(before), known)
    const fresh = [...collect(JSON.parse(answer.output), new Set())].filter(
      (text) =>
        !known.has(text) &&
        !clean.texts.some((whole) => piecesOf(text).every((piece) => whole.includes(piece))) &&
        newWords(text, clean, before).length > 0,
    )
    if (fresh.length > 0)
      return counts.wrong.push(
        `${what} says ${newWords(fresh[0]!, clean, before)} in ${JSON.stringify(fresh[0])} (${names})`,
      )
    if (answer.notes.length === 0)
      return counts.wrong.push(`${what} leaves something out and does not say so (${names})`)
    return counts.left_out++
  }
  for (const [name, tool, input] of GLOBAL) compare(name, await asked(tool, input), clean.global.get(name)!)
  for (const ref of new Set(flips.flatMap(({ refs }) => refs.slice(0, 1))))
    for (const [name, tool, input] of OF_ONE)
      compare(`${name} ${ref}`, await asked(tool, input(ref)), await cleanOf(clean, name, ref, flips))
  await noticedByDoctor(flips, counts)
}

/** Checks that doctor notices every flip, and names the conversation if the row belongs to one. */
async function noticedByDoctor(flips: Flip[], counts: { unnoticed: string[] }): Promise<void> {
  const answer = await asked(doctor as never, {})
  const problems =
    "output" in answer
      ? JSON.parse(answer.output).checks.filter(({ status }: { status: string }) => status === "problem")
      : []
  if (problems.length === 0) return void counts.unnoticed.push(...flips.map(({ name }) => name))
  const store = openStore(history)
  const { conversations, others } = await store.inspect()
  store.close()
  const named = new Set(conversations.map(({ ref }) => formatRef(ref)))
  const left = flips.filter(({ refs }) => !refs.some((ref) => named.has(ref)))
  // Damage outside conversations is counted by kind.
  const counted = others.reduce((sum, line) => sum + (Number.parseInt(line, 10) || 0), 0)
  if (left.length > counted) counts.unnoticed.push(...left.map(({ name }) => name))
}

async function sound(): Promise<boolean> {
  return (await damageIn()).length === 0
}

async function damageIn(): Promise<unknown[]> {
  try {
    const store = openStore(history)
    try {
      const { conversations, others } = await store.inspect()
      return [...(await store.check()), ...conversations, ...others]
    } finally {
      store.close()
    }
  } catch (error) {
    return [String(error)]
  }
}

/** Half of the rows are in blocks, the others in all tables. No two belong to one conversation, so that doctor names each. */
function chosenRows(n: number): StoredRow[] {
  const byTable = Map.groupBy(bytes.rows, ({ table }) => table)
  const tables = [...byTable.keys()]
  const chosen: StoredRow[] = []
  const taken = new Set<string>()
  for (let tries = 0; chosen.length < n && tries < 20 * n; tries++) {
    const row = pick(byTable.get(random() < 0.5 ? (random() < 0.5 ? "body" : "raw") : pick(tables))!)
    const names = [...refsOf(row), ...(refsOf(row).length === 0 ? [`${row.table} ${row.owner}`] : [])]
    if (names.some((name) => taken.has(name))) continue
    for (const name of names) taken.add(name)
    chosen.push(row)
  }
  return chosen
}

function flipIn(row: StoredRow): Flip {
  const { column, places } = pick(
    row.values.flatMap((value) => Array(1 + Math.floor(Math.log2(countBytes(value.places)))).fill(value)),
  ) as StoredRow["values"][number]
  const at = byteIn(places, Math.floor(random() * countBytes(places)))
  const bit = Math.floor(random() * 8)
  return {
    at,
    bit,
    table: row.table,
    name: `${row.table}[${row.owner}] column ${column}, byte ${at}, bit ${bit}`,
    refs: refsOf(row),
  }
}

/** The conversations that a row belongs to. */
function refsOf({ table, owner }: StoredRow): string[] {
  const db = openSqlite(history, { readonly: true })
  try {
    const where: Record<string, string> = {
      conversation: "id = ?",
      ...Object.fromEntries(["message", "body", "touch", "command", "made"].map((name) => [name, "id = ?"])),
      unit: "unit_id = ?",
      raw: "unit_id = ?",
      project: "project_id = ?",
    }
    const found = where[table]
    if (found === undefined) return []
    const rows = db
      .prepare(`select source, native_id as id from conversation where ${found} order by id`)
      .all(owner) as Ref[]
    return rows.map(formatRef)
  } finally {
    db.close()
  }
}

type Rows = Map<string, Set<string>>

/** The rows of a history, without values that differ between any two files. */
function rowsOf(path: string): Rows {
  const db = openSqlite(path, { readonly: true })
  const rows: Rows = new Map()
  for (const table of SUMMED_TABLES) {
    const where = table === "meta" ? "where key not in ('history_id', 'sync_progress')" : ""
    rows.set(table, new Set((db.prepare(`select sum from ${table} ${where}`).pluck().all() as number[]).map(String)))
  }
  db.close()
  return rows
}

function missingFrom(before: Rows, now: Rows): number {
  let missing = 0
  for (const [table, sums] of before) for (const sum of sums) if (!now.get(table)!.has(sum)) missing++
  return missing
}

function isSame(before: Rows, path: string): boolean {
  try {
    return missingFrom(before, rowsOf(path)) === 0
  } catch {
    return false
  }
}

/** Repairs a damaged history with `dex doctor --repair`, and returns the difference that remains, if any. */
async function repairedBy(damaged: string, before: string): Promise<string | undefined> {
  removeDatabase(history)
  cpSync(damaged, history)
  const run = await dex(home, ["doctor", "--repair", "--json"])
  if (run.code === 2) {
    const isLeft = readFileSync(damaged).equals(readFileSync(history))
    return isLeft && /could not be repaired/.test(run.stderr) ? "refused" : `dex doctor --repair: ${run.stderr}`
  }
  const now = await kept(home)
  if (now !== before) return `not all is back: ${difference(before, now)}`
  return (await sound()) ? undefined : `still damaged: ${JSON.stringify(await damageIn())}`
}

function difference(before: string, now: string): string {
  const [a, b] = [JSON.parse(before), JSON.parse(now)] as [unknown[], unknown[]]
  const at = a.findIndex((one, i) => JSON.stringify(one) !== JSON.stringify(b[i]))
  return `${JSON.stringify(a[at])?.slice(0, 300)} is now ${JSON.stringify(b[at])?.slice(0, 300)}`
}

/** Everything that must exist after a repair. */
async function kept(of: string): Promise<string> {
  const store = openStore(join(of, ".dex", "history.db"))
  const forgotten = await store.forgotten()
  // A project whose row is lost becomes private, so private projects must still be private, and others may be.
  const projects = (await store.projects()).map(({ path }) => [path])
  const isOpen = (await store.projects()).some(({ path, private: isPrivate }) => path === hidden && !isPrivate)
  const collections = (await store.collections()).map(({ name, root }) => [name, root])
  store.close()
  return JSON.stringify([forgotten, isOpen, ...projects.sort(), ...collections, ...(await shown(of))])
}

/** Every message of every conversation, private ones and numbers included, with files and commands. */
async function shown(of: string): Promise<[ref: string, content: string][]> {
  const path = join(of, ".dex", "history.db")
  const db = openSqlite(path, { readonly: true })
  const refs = db.prepare("select source, native_id as id from conversation order by source, native_id").all() as Ref[]
  db.close()
  const store = openStore(path)
  const all: [string, string][] = []
  for (const ref of refs) {
    const { title, project, kind, started_at, ended_at, message_count } = (await store.conversation(ref)) ?? {}
    const messages = (await store.messages(ref)).map(({ number, role, at, parts }) => [number, role, at, parts])
    const effects = [await store.filesOf(ref), await store.commandsOf(ref), await store.madeIn(ref)]
    const content = [title, project, kind, started_at, ended_at, message_count, messages, effects]
    all.push([formatRef(ref), JSON.stringify(content)])
  }
  store.close()
  return all
}

function copyOf(path: string): string {
  const copy = join(tempDir(), "history.db")
  cpSync(path, copy)
  return copy
}

function execSize(path: string): number {
  const db = openSqlite(path)
  db.pragma("wal_checkpoint(truncate)")
  const size = (db.pragma("page_count", { simple: true }) as number) * 4096
  db.close()
  return size
}

function collect(value: unknown, into: Set<string>): Set<string> {
  if (typeof value === "string") into.add(value)
  else if (Array.isArray(value)) for (const one of value) collect(one, into)
  else if (typeof value === "object" && value !== null) for (const one of Object.values(value)) collect(one, into)
  return into
}

function makeSources(dir: string): void {
  generateCorpus(join(dir, ".claude"), { messages: 600, messagesPerConversation: 30, seed: 3 })
}

/** Gives all files fixed times, because the order of reading and the size of some rows depend on them. */
function setTimes(dir: string): void {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  const paths = files.map(({ parentPath, name }) => join(parentPath, name)).sort()
  for (const [i, path] of paths.entries()) utimesSync(path, 1_750_000_000 + i, 1_750_000_000 + i)
}

function count(all: string[], one: string): number {
  return all.filter((other) => other === one).length
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!
}

/** A random generator that gives the same numbers for the same seed. */
function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
