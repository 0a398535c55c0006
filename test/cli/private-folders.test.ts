import { mkdirSync, writeFileSync } from "node:fs"
import { join, parse } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { putSession, text, writer } from "../support/claude-code.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const ID = "fc001111-1111-4111-8111-111111111111"
const WORD = "zanzibar"

/** A conversation that begins in one folder and continues in another. */
function moving(home: string, from: string, to: string): void {
  const first = writer({ sessionId: ID, cwd: from }, "a")
  first.prompt("Starts in the other folder")
  first.answer("m1", [text("ok")])
  const then = writer({ sessionId: ID, cwd: to }, "b")
  then.goTo("a2")
  then.prompt(`Read the ${WORD} client plan`)
  then.answer("m2", [text(`The ${WORD} plan is secret. We decided to use ${WORD} keys instead of passwords.`)])
  putSession(home, [...first.records, ...then.records], ID)
}

function folders(home: string): { other: string; acme: string } {
  const [other, acme] = [join(home, "other"), join(home, "acme")]
  for (const folder of [other, acme]) mkdirSync(folder, { recursive: true })
  return { other, acme }
}

const COMMANDS = [
  ["list", "--all", "--json"],
  ["search", WORD, "--json"],
  ["show", ID],
  ["suggest", "--query", `${WORD} plan`, "--json"],
  ["decisions", WORD, "--json"],
  ["timeline", "--json"],
  ["usage", "--json"],
  ["digest", "--json"],
  ["ask", `What is the ${WORD} plan?`, "--json"],
]

/** The commands that show the conversation in a folder. */
async function commandsThatShowIt(home: string, cwd: string): Promise<string[]> {
  const all: string[] = []
  for (const args of COMMANDS) {
    const { stdout, stderr } = await dex(home, args, {}, cwd)
    // Some answers repeat the question.
    const printed = (stdout + stderr)
      .replaceAll(`What is the ${WORD} plan?`, "")
      .replaceAll(`"${WORD} plan"`, "")
      .replaceAll(`"${WORD}"`, "")
    if (
      printed.includes(`${WORD} client`) ||
      printed.includes(`The ${WORD}`) ||
      printed.includes("Starts in the other")
    )
      all.push(args[0]!)
  }
  return all
}

test("a conversation that worked in a private folder is shown only there, wherever it began", async () => {
  const home = tempDir()
  const { other, acme } = folders(home)
  moving(home, other, acme)
  await syncHome(home)
  expect(await commandsThatShowIt(home, other)).toEqual(expect.arrayContaining(["list", "search", "show"]))
  await dex(home, ["private", acme])
  expect(await commandsThatShowIt(home, other)).toEqual([])
  expect(await commandsThatShowIt(home, acme)).toEqual(expect.arrayContaining(["list", "search", "show"]))
  await syncHome(home)
  expect(await commandsThatShowIt(home, other)).toEqual([])
  await dex(home, ["private", acme, "--off"])
  expect(await commandsThatShowIt(home, other)).toEqual(expect.arrayContaining(["list", "search", "show"]))
  const { stdout } = await dex(home, ["list", "--json"], {}, other)
  expect(JSON.parse(stdout).conversations[0].project).toBe(other)
})

test("the same applies to a project that was private before, to a worktree elsewhere, and to subagents", async () => {
  const home = tempDir()
  const { other, acme } = folders(home)
  const { git } = makeRepository(acme)
  git("commit", "-q", "--allow-empty", "-m", "first")
  const worktree = join(home, "elsewhere", "tree")
  git("worktree", "add", "-q", worktree)
  await syncHome(home)
  await dex(home, ["private", acme])
  moving(home, other, worktree)
  const sub = writer({ sessionId: ID, cwd: other, isSidechain: true, agentId: "s1" }, "s")
  sub.prompt(`The ${WORD} subagent`)
  const folder = join(home, ".claude", "projects", "-work", ID, "subagents")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "agent-s1.jsonl"), sub.records.map((record) => `${JSON.stringify(record)}\n`).join(""))
  await syncHome(home)
  const store = openStore(join(home, ".dex", "history.db"))
  const inside = await store.list({ limit: 10, offset: 0, inside: acme })
  store.close()
  expect(inside.rows.map(({ project }) => project)).toEqual(inside.rows.map(() => acme))
  expect(inside.rows.length).toBeGreaterThan(0)
  expect(await commandsThatShowIt(home, other)).toEqual([])
})

test("conversations that an earlier dex stored are assigned to their folders when the history is next opened", async () => {
  const home = tempDir()
  const { other, acme } = folders(home)
  moving(home, other, acme)
  await syncHome(home)
  const { default: Database } = await import("better-sqlite3")
  const db = new Database(join(home, ".dex", "history.db"))
  db.prepare("insert into project (path, private) values (?, 1)").run(acme)
  db.close()
  expect(await commandsThatShowIt(home, other)).toEqual([]) // also while the index still has it where it began
  await syncHome(home)
  expect(await commandsThatShowIt(home, other)).toEqual([])
})

test("the root of a disk marked as private hides only what worked in the root itself", async () => {
  const home = tempDir()
  const { other, acme } = folders(home)
  const { root } = parse(home)
  moving(home, other, acme)
  await syncHome(home)
  expect(await dex(home, ["private", root])).toMatchObject({ code: 0 })
  for (const cwd of [other, acme])
    expect(await commandsThatShowIt(home, cwd)).toEqual(expect.arrayContaining(["list", "search", "show"]))
  await syncHome(home)
  expect(await commandsThatShowIt(home, other)).toEqual(expect.arrayContaining(["list", "search", "show"]))

  const elsewhere = tempDir()
  moving(elsewhere, folders(elsewhere).other, root)
  await syncHome(elsewhere)
  await dex(elsewhere, ["private", root])
  expect(await commandsThatShowIt(elsewhere, folders(elsewhere).other)).toEqual([])
})
