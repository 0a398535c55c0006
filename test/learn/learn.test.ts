import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { learn } from "../../src/learn/learn.ts"
import { pathBelow } from "../../src/learn/paths.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { DELETE_UNUSED_PROJECTS } from "../../src/store/knowledge/purge.ts"
import { call, PROJECT, putSession, SESSION, type Writer, writer } from "../support/claude-code.ts"
import { openKnowledgeFile } from "../support/inside.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const OTHER = "99999999-2222-4333-8444-555555555555"

function run(session: Writer, id: string, command: string, output: string, isError: boolean): void {
  session.answer(`m_${id}`, [call(id, "Bash", { command })])
  const told = isError ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
  session.result(id, output, { toolUseResult: told }, { is_error: isError })
}

function edit(session: Writer, id: string, file: string): void {
  const filePath = `/home/dev/proj/${file}`
  session.answer(`m_${id}`, [call(id, "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-a", "+zebrafishword"] }]
  session.result(id, "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
}

function solved(session: Writer): void {
  session.prompt("Make the tests pass")
  run(session, "c1", "npm test", "TypeError: quokkaword is not a function", true)
  edit(session, "e1", "src/token.ts")
  run(session, "c2", "npm test", "12 passed", false)
}

async function home(...sessions: [string, (session: Writer) => void][]): Promise<string> {
  const at = tempDir()
  for (const [id, tell] of sessions) {
    const session = writer({ sessionId: id }, id.slice(0, 3))
    tell(session)
    putSession(at, session.records, id)
  }
  await syncHome(at)
  return at
}

const knowledgeOf = (at: string) => openKnowledge(join(at, ".dex", KNOWLEDGE_FILE))
const storeOf = (at: string) => openStore(join(at, ".dex", "history.db"))

function bytesIn(at: string): string {
  const dir = join(at, ".dex")
  const files = readdirSync(dir).filter((name) => name.startsWith(KNOWLEDGE_FILE))
  return Buffer.concat(files.map((name) => readFileSync(join(dir, name)))).toString("latin1")
}

function factsIn(at: string): unknown {
  const knowledge = knowledgeOf(at)
  try {
    return {
      fixes: knowledge.fixes.fixesWithWords(["quokkaword"], { limit: 10 }),
      worked: knowledge.files.filesWorkedOn("/home/dev/proj", [{ source: "claude_code", root: SESSION }]),
    }
  } finally {
    knowledge.close()
  }
}

test("nothing is learned before the first question, and then every sync continues", async () => {
  const at = await home([SESSION, solved])
  expect(readdirSync(join(at, ".dex"))).not.toContain(KNOWLEDGE_FILE)
  expect(await dex(at, ["fix", "quokkaword is not a function"])).toMatchObject({ code: 0 })
  const before = factsIn(at)
  expect(before).toMatchObject({ fixes: [{ files: [{ path: "src/token.ts" }] }], worked: [{ path: "src/token.ts" }] })

  const session = writer({ sessionId: OTHER }, "o")
  solved(session)
  putSession(at, session.records, OTHER)
  await syncHome(at)
  expect(factsIn(at)).toMatchObject({ fixes: [{}, {}] })
})

test("learning step by step gives the same as learning at once", async () => {
  const at = await home([SESSION, (session) => session.prompt("Make the tests pass")])
  await dex(at, ["fix", "x"])
  const session = writer()
  solved(session)
  const path = putSession(at, session.records.slice(0, 3))
  for (const record of session.records.slice(3)) {
    appendFileSync(path, `${JSON.stringify(record)}\n`)
    await syncHome(at)
  }
  const bitByBit = factsIn(at)
  for (const suffix of ["", "-wal", "-shm"]) rmSync(join(at, ".dex", `${KNOWLEDGE_FILE}${suffix}`), { force: true })
  await dex(at, ["fix", "x"])
  expect(bitByBit).toEqual(factsIn(at))
  expect(bitByBit).toMatchObject({ fixes: [{ fixed_number: expect.any(Number) }] })
})

test("forgotten conversations are in no byte of the facts, and another history's facts are discarded", async () => {
  const at = await home([SESSION, solved], [OTHER, (session) => session.prompt("hello there")])
  await dex(at, ["fix", "quokkaword is not a function"])
  const bytes = () => bytesIn(at)
  expect(bytes()).toContain("zebrafishword")
  expect(await dex(at, ["forget", `claude_code:${SESSION}`, "--yes"])).toMatchObject({ code: 0 })
  for (const word of ["zebrafishword", "quokkaword", "token.ts"]) expect(bytes()).not.toContain(word)

  const another = await home([OTHER, (session) => session.prompt("hello again")])
  const [store, knowledge] = [storeOf(another), knowledgeOf(at)]
  expect(await learn(store, knowledge)).toMatchObject({ complete: true })
  expect(openKnowledgeFile(knowledge).prepare("select count(*) from conversation").pluck().get()).toBe(1)
  store.close()
  knowledge.close()
})

test.each(["before the facts are learned again", "before the file is rewritten"])(
  "a forgotten conversation is in no byte after the next sync if dex is killed %s",
  async (when) => {
    const at = tempDir()
    const session = writer({ sessionId: SESSION, cwd: "/home/dev/initech" })
    solved(session)
    putSession(at, session.records)
    const other = writer({ sessionId: OTHER }, "o")
    other.prompt("hello there")
    putSession(at, other.records, OTHER)
    await syncHome(at)
    await dex(at, ["fix", "quokkaword is not a function"])
    expect(bytesIn(at)).toContain("initech")
    const [store, knowledge] = [storeOf(at), knowledgeOf(at)]
    await store.forget([{ source: "claude_code", id: SESSION }])
    if (when === "before the file is rewritten") await learn(store, knowledge)
    store.close()
    knowledge.close()
    await syncHome(at)
    for (const word of ["zebrafishword", "quokkaword", "token.ts", "initech"]) expect(bytesIn(at)).not.toContain(word)
  },
)

test("the file is rewritten once after forgetting, and not after learning again", async () => {
  const at = await home([SESSION, solved], [OTHER, (session) => session.prompt("hello there")])
  await dex(at, ["fix", "x"])
  const [store, knowledge] = [storeOf(at), knowledgeOf(at)]
  expect(knowledge.projects.isPurgeDue()).toBe(false)
  await store.forget([{ source: "claude_code", id: SESSION }])
  await learn(store, knowledge)
  expect(knowledge.projects.isPurgeDue()).toBe(true)
  knowledge.projects.purgeKnowledge(join(at, ".dex", KNOWLEDGE_FILE))
  expect(knowledge.projects.isPurgeDue()).toBe(false)
  store.close()
  knowledge.close()
})

test("a project with known facts is kept when the file is rewritten", () => {
  const path = join(tempDir(), KNOWLEDGE_FILE)
  const knowledge = openKnowledge(path)
  onTestFinished(() => void knowledge.close())
  const tables = openKnowledgeFile(knowledge)
    .prepare(
      "select m.name from sqlite_schema m join pragma_table_info(m.name) c on c.name = 'project_id' where m.type = 'table'",
    )
    .pluck()
    .all() as string[]
  expect(tables).toContain("conversation")
  for (const table of tables) expect(DELETE_UNUSED_PROJECTS, table).toMatch(new RegExp(`from ${table}\\b`))
  openKnowledgeFile(knowledge).exec("insert into project (path) values ('/kept'), ('/left')")
  openKnowledgeFile(knowledge).exec(
    "insert into git_read (project_id, head, shallow, read_at, left_out) values (1, 'h', '', 1, '[]')",
  )
  knowledge.projects.purgeKnowledge(path)
  expect(openKnowledgeFile(knowledge).prepare("select path from project").pluck().all()).toEqual(["/kept"])
})

test("git and code facts of a project that is no longer watched are in no byte; its conversations' facts remain", async () => {
  const at = tempDir()
  const repository = makeRepository(join(at, "code"))
  const project = repository.folder
  const session = writer({ cwd: project })
  session.prompt("we should always sort the wombat table by name")
  putSession(at, session.records)
  writeFileSync(join(project, "numbat.ts"), "export function bandicoot() {}\n")
  repository.git("add", ".")
  repository.git("commit", "-q", "-m", "feat!: quollword")
  const run = (...args: string[]) => dex(at, args, {}, project)
  await run("sync")
  await run("suggest")
  for (const word of ["numbat", "bandicoot", "quollword", "wombat"]) expect(bytesIn(at)).toContain(word)
  expect(await run("watch", "--off")).toMatchObject({ code: 0 })
  await run("sync")
  for (const word of ["numbat", "bandicoot", "quollword"]) expect(bytesIn(at)).not.toContain(word)
  expect(bytesIn(at)).toContain("wombat")
})

test("words after a web page may be a stranger's, even in a conversation that started from them", async () => {
  const at = await home(
    [
      SESSION,
      (session) => {
        session.prompt("Look it up")
        session.answer("m_w", [call("w1", "WebFetch", { url: "https://example.org" })])
        session.result("w1", "a page")
        solved(session)
      },
    ],
    [OTHER, solved],
  )
  await dex(at, ["fix", "x"])
  const knowledge = knowledgeOf(at)
  const own = knowledge.fixes
    .fixesWithWords(["quokkaword"], { limit: 10 })
    .map(({ id, is_own_words }) => [id, is_own_words])
  expect(Object.fromEntries(own)).toEqual({ [SESSION]: false, [OTHER]: true })
  knowledge.close()
})

test("facts in another version's format are learned again", async () => {
  const at = await home([SESSION, solved])
  await dex(at, ["fix", "x"])
  const knowledge = knowledgeOf(at)
  openKnowledgeFile(knowledge).exec(
    "update meta set value = 'another' where key = 'schema'; alter table fix drop column edits",
  )
  knowledge.close()
  expect(await dex(at, ["fix", "quokkaword is not a function"])).toMatchObject({ code: 0 })
  expect(factsIn(at)).toMatchObject({ fixes: [{ edits: 1 }] })
})

test("facts of an older learner are removed even if forgetting them is interrupted", async () => {
  const at = await home([SESSION, solved])
  await dex(at, ["fix", "x"])
  const [store, knowledge] = [storeOf(at), knowledgeOf(at)]
  onTestFinished(() => {
    store.close()
    knowledge.close()
  })
  openKnowledgeFile(knowledge).exec(
    "update meta set value = '3' where key = 'learner'; update fix set edit = 'what 3 learned'",
  )
  openKnowledgeFile(knowledge).exec(
    "create trigger cut before delete on conversation begin select raise(abort, 'cut off'); end",
  )
  await expect(learn(store, knowledge)).rejects.toThrow("cut off")
  openKnowledgeFile(knowledge).exec("drop trigger cut")
  await learn(store, knowledge)
  expect(knowledge.fixes.fixesWithWords(["quokkaword"], { limit: 2 })).toMatchObject([
    { edit: expect.stringContaining("zebrafishword") },
  ])
})

test("paths below a project, on every system", () => {
  expect(pathBelow("/a/b", "/a/b/c/d.ts")).toBe("c/d.ts")
  expect(pathBelow("/a/b", "/a/bc/d.ts")).toBeUndefined()
  expect(pathBelow("/a/b", "./c.ts")).toBe("c.ts")
  expect(pathBelow("/a/b", "../c.ts")).toBeUndefined()
  expect(pathBelow("C:\\a\\b", "C:\\a\\b\\c.ts")).toBe("c.ts")
  expect(pathBelow("/a/b", "C:\\x\\c.ts")).toBeUndefined()
  expect(PROJECT).toBeDefined()
})
