import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { createDex } from "../../src/app/dex.ts"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { tryLock } from "../../src/store/sqlite/lock.ts"
import { updatedKnowledge } from "../../src/tools/learned.ts"
import { listeners } from "../../src/watch/listeners.ts"
import { carryOutOrder } from "../../src/watch/orders.ts"
import { connect } from "../mcp/client.ts"
import { DEX, startDex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { openKnowledgeFile } from "../support/inside.ts"
import { makeRepository } from "../support/repository.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

const LEFT =
  "Another dex process is updating the facts right now, so this answer may be incomplete. Try again in a moment."
const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"

const lockOf = (home: string) => join(home, ".dex", "knowledge.lock")

/** Holds the lock like another process that learns. */
function holdLock(home: string): () => void {
  const lock = tryLock(lockOf(home))!
  let held = true
  const release = () => {
    if (held) lock.release()
    held = false
  }
  onTestFinished(release)
  return release
}

function learnedFrom(home: string): number {
  const knowledge = openKnowledge(join(home, ".dex", KNOWLEDGE_FILE))
  try {
    return openKnowledgeFile(knowledge).prepare("select count(*) from conversation").pluck().get() as number
  } finally {
    knowledge.close()
  }
}

test("while another process learns, an answer uses what is known so far, and says so", async () => {
  const home = await synced()
  const release = holdLock(home)
  const commands = [["suggest", "--file", "src/auth.ts"], ["fix", "token already used"], ["decisions"], ["tests"]]
  for (const command of commands) {
    const { stdout } = await warmDex(home, [...command, "--json"])
    expect((JSON.parse(stdout) as { notes: string[] }).notes, command[0]).toContain(LEFT)
    expect((await warmDex(home, command)).stderr, command[0]).toContain(LEFT)
  }
  const client = await connect(home)
  // A server does not wait for long: on a busy machine it may first answer that it does not know yet.
  const suggest = () => client.call("context_suggest", { current_file: "src/auth.ts" })
  let told = await suggest()
  for (let i = 0; i < 40 && !(told.structuredContent!.notes as string[]).includes(LEFT); i++) told = await suggest()
  expect(told.structuredContent!.notes).toContain(LEFT)
  expect(told.content[0]!.text).toContain(`note: ${LEFT}`)
  expect(learnedFrom(home)).toBe(0)
  release()
  const { stdout } = await warmDex(home, ["decisions", "--json"])
  expect((JSON.parse(stdout) as { notes: string[] }).notes).toEqual([])
  expect(learnedFrom(home)).toBe(3)
})

test("a process that is killed while it learns leaves no lock, and the next one finishes", async () => {
  const home = tempDir()
  const { conversations } = generateCorpus(join(home, ".claude"), { messages: 12_000, seed: 8 })
  await syncHome(home)
  const child = startDex(home, ["suggest", "--file", "a.ts"])
  const exited = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)))
  // It saves what it learned a few conversations at a time.
  while (!existsSync(join(home, ".dex", KNOWLEDGE_FILE)) || learnedFrom(home) === 0)
    await new Promise((resolve) => setImmediate(resolve))
  expect(tryLock(lockOf(home))).toBeUndefined()
  child.kill("SIGKILL")
  expect(await exited).toBe("SIGKILL")
  expect(learnedFrom(home)).toBeLessThan(conversations)
  const { stdout } = await warmDex(home, ["decisions", "--json"])
  expect((JSON.parse(stdout) as { notes: string[] }).notes).toEqual([])
  expect(learnedFrom(home)).toBe(conversations)
})

test("messages that arrive while another process is learning are learned before that process ends", async () => {
  const home = await synced()
  const later = {
    id: "44444444-4444-4444-8444-444444444444",
    start: "2026-11-12T09:00:00Z",
    turns: [{ user: "Later" }],
  }
  let synced_again = ""
  const one = createDex({
    env: { HOME: home },
    cwd: home,
    version: "0",
    // After the last check for news, before it releases the lock.
    onProgress: () => {
      if (synced_again !== "") return
      claudeSession(home, later)
      synced_again = execFileSync(process.execPath, [DEX, "sync"], {
        env: { PATH: process.env.PATH, HOME: home },
        encoding: "utf8",
      })
      expect(learnedFrom(home)).toBe(3)
    },
  })
  onTestFinished(() => one.close())
  expect((await updatedKnowledge(one)).notes).toEqual([])
  expect(synced_again).toContain("1 new message")
  expect(learnedFrom(home)).toBe(4)
})

test("forgetting deletes the facts, even while another process is learning", async () => {
  const home = await synced()
  await warmDex(home, ["fix", "token already used"])
  const bytes = () => {
    const dir = join(home, ".dex")
    const files = readdirSync(dir).filter((name) => name.startsWith(KNOWLEDGE_FILE))
    return Buffer.concat(files.map((name) => readFileSync(join(dir, name)))).toString("latin1")
  }
  expect(bytes()).toContain("Refresh token race")
  holdLock(home)
  expect(await warmDex(home, ["forget", AUTH, "--yes"])).toMatchObject({ code: 0 })
  expect(bytes()).not.toContain("Refresh token race")
})

test("dex watch reads a project again if it could not while another process was learning", async () => {
  const home = await synced()
  const { folder: project, git } = makeRepository(tempDir())
  git("commit", "-q", "--allow-empty", "-m", "first")
  const one = createDex({ env: { HOME: home }, cwd: home, version: "0" })
  onTestFinished(() => one.close())
  const release = holdLock(home)
  const order = { type: "project" as const, project, git: true }
  expect(await carryOutOrder(order, one, listeners)).toMatchObject({ busy: true, problems: [] })
  expect((await one.knowledge()).git.gitProject(project)).toBeUndefined()
  release()
  expect(await carryOutOrder(order, one, listeners)).toMatchObject({ busy: false, problems: [] })
  expect((await one.knowledge()).git.gitProject(project)?.head).toMatch(/^[0-9a-f]{40}$/)
})
