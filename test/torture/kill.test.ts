import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Plugin } from "esbuild"
import { afterAll, beforeAll, expect, test } from "vitest"
import { generateCorpus, generator } from "../../bench/corpus.ts"
import { bundle } from "../../scripts/bundle.mjs"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { DEX, startDex } from "../support/dex.ts"

/** 30 in CI, 1,000 with `npm run torture`. */
const KILLS = Number(process.env.DEX_KILLS ?? 30)
const CONTROL_KILLS = 200
const dir = mkdtempSync(join(tmpdir(), "dex-kill-"))

beforeAll(() => {
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

test(
  `kill -9 at ${KILLS} random points of a sync loses nothing, duplicates nothing and damages nothing`,
  async () => {
    const outcome = await campaign(join(dir, "real"), DEX, KILLS)
    console.log(
      `${outcome.killed} of ${KILLS} were killed before they ended, ${outcome.midway} with some conversations stored and some not`,
    )
    expect(outcome.wrong).toEqual([])
    expect(outcome.midway).toBeGreaterThan(KILLS / 10)
  },
  300_000 + KILLS * 4000,
)

test(
  "the same campaign detects a build that stores data and cursor separately",
  async () => {
    const outcome = await campaign(join(dir, "control"), await controlBuild(), CONTROL_KILLS, true)
    expect(outcome.wrong.length).toBeGreaterThan(0)
  },
  300_000 + CONTROL_KILLS * 4000,
)

/**
 * Large enough that the first sync uses threads. Later growth is small and is read without them, so kills hit both ways of
 * reading.
 */
const FIRST = { messages: 1100, messagesPerConversation: 20, meanChars: 7600 }

/** Kills syncs of a growing history repeatedly. Whenever a sync completes, everything must be stored. */
async function campaign(base: string, program: string, kills: number, stopAtFirst = false) {
  const random = generator(42)
  const outcome = { killed: 0, midway: 0, wrong: [] as string[] }
  let made = 0
  const freshHome = () => {
    const home = join(base, String(made++))
    generateCorpus(join(home, ".claude"), { ...FIRST, seed: 100 + made })
    return home
  }
  // A kill must happen during the sync, so the time of a sync is measured, for an entire history and for growth.
  let home = freshHome()
  const whole = await timed(() => runAndKill(home, program))
  growAll(home, random)
  const growth = await timed(() => runAndKill(home, program))
  home = freshHome()
  let expected = whole
  for (let i = 0; i < kills; i++) {
    const ended = await runAndKill(home, program, random() * expected)
    if (!ended) outcome.killed++
    const state = await inspect(home)
    if (state.wrong) outcome.wrong.push(`kill ${i}: ${state.wrong}`)
    if (state.stored > 0 && state.stored < state.files) outcome.midway++
    if (outcome.wrong.length > 0 && stopAtFirst) break
    if (state.stored < state.files) continue
    if (random() < 0.5) {
      growAll(home, random)
      expected = growth
    } else {
      rmSync(home, { recursive: true, force: true })
      home = freshHome()
      expected = whole
    }
  }
  return outcome
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = Date.now()
  await work()
  return Date.now() - started
}

/** Returns true if it ended before it was killed. */
function runAndKill(home: string, program: string, afterMs?: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = startDex(home, ["sync"], program)
    let stderr = ""
    child.stderr?.on("data", (data) => (stderr += data))
    const timer = afterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), afterMs)
    child.on("exit", (code, signal) => {
      clearTimeout(timer)
      if (signal === null && code !== 0) reject(new Error(`sync ended with ${code}: ${stderr}`))
      else resolve(signal === null)
    })
  })
}

/** Checks that every conversation contains exactly the records before its cursor, each once. */
async function inspect(home: string): Promise<{ stored: number; files: number; wrong?: string }> {
  const projects = join(home, ".claude", "projects")
  const files = readdirSync(projects, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const store = openStore(join(home, ".dex", "history.db"))
  const index = openIndex(join(home, ".dex", INDEX_FILE))
  try {
    const problems = [...(await store.check()), ...(await index.check())]
    if (problems.length > 0) return { stored: 0, files: files.length, wrong: problems.join("; ") }
    const units = await store.knownUnits("claude_code")
    for (const key of units.keys()) {
      const unit = (await store.knownUnit("claude_code", key))!
      const { offset } = JSON.parse(unit.cursor) as { offset: number }
      const expected = readFileSync(unit.path).subarray(0, offset).toString("utf8").split("\n").length - 1
      const id = unit.key.split("/").at(-1)!.replace(".jsonl", "")
      const messages = await store.messages({ source: "claude_code", id })
      if (messages.length !== expected)
        return {
          stored: units.size,
          files: files.length,
          wrong: `${id}: ${messages.length} messages stored, ${expected} records before the cursor`,
        }
    }
    for (const row of (await store.list({ limit: 100_000, offset: 0 })).rows) {
      if (!units.has([...units.keys()].find((key) => key.includes(row.ref.id)) ?? ""))
        return { stored: units.size, files: files.length, wrong: `${row.ref.id} is stored without a cursor` }
      const messages = await store.messages(row.ref)
      if (messages.length !== row.message_count)
        return {
          stored: units.size,
          files: files.length,
          wrong: `${row.ref.id} says ${row.message_count} messages and has ${messages.length}`,
        }
    }
    return { stored: units.size, files: files.length }
  } finally {
    store.close()
    index.close()
  }
}

function growAll(home: string, random: () => number): void {
  const projects = join(home, ".claude", "projects")
  for (const entry of readdirSync(projects, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || random() < 0.5) continue
    const path = join(entry.parentPath, entry.name)
    const [first] = readFileSync(path, "utf8").split("\n", 1)
    const record = JSON.parse(first!) as { uuid: string }
    for (let i = 0; i < 5; i++)
      appendFileSync(
        path,
        `${JSON.stringify({ ...record, uuid: `${random()}`, message: { role: "user", content: `later ${random()}` } })}\n`,
      )
  }
}

/** Builds dex without transactions, whose damage the campaign must detect. The build is next to the packages that it imports. */
async function controlBuild(): Promise<string> {
  const outdir = fileURLToPath(new URL("../../node_modules/.dex-control", import.meta.url))
  const withoutTransactions: Plugin = {
    name: "without-transactions",
    setup(bundler) {
      bundler.onLoad({ filter: /sqlite[\\/]database\.ts$/ }, (file) => {
        const source = readFileSync(file.path, "utf8")
        const broken = source.replace("return db.transaction(work).immediate()", "return work()")
        if (broken === source) throw new Error("inTransaction has changed: this test must change with it")
        return { contents: broken, loader: "ts" }
      })
    },
  }
  await bundle({ outdir, version: "control", plugins: [withoutTransactions] })
  return join(outdir, "dex.js")
}
