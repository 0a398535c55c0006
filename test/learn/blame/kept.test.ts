import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../../src/core/formats.ts"
import { openKnowledge } from "../../../src/store/knowledge/knowledge.ts"
import {
  commit,
  conversationsOfLines,
  createAsk,
  EXPECTED,
  FIRST,
  ONE,
  put,
  refTo,
  SECOND,
  session,
  shop,
} from "../../support/blame-shop.ts"
import { openKnowledgeFile } from "../../support/inside.ts"
import { makeRepository } from "../../support/repository.ts"
import { tempDir } from "../../support/temp.ts"
import { warmDex } from "../../support/warm.ts"

const LATER = "33333333-2222-4333-8444-555555555555"
const fileIn = (home: string) => join(home, ".dex", KNOWLEDGE_FILE)

type KeptRow = { hash: string; path: string; found: string }
const rowsIn = (home: string) =>
  openKnowledgeFile({ path: fileIn(home) })
    .prepare("select hash, path, found from line_owner order by until")
    .all() as KeptRow[]

/** Stores another result than the real one, so that an answer shows if it came from the store. */
function mark(home: string): void {
  openKnowledgeFile({ path: fileIn(home) })
    .prepare("update line_owner set found = replace(found, 'proved', 'likely')")
    .run()
}

describe("a stored attribution", () => {
  test("is reused without reading the commit", async () => {
    const { home, ask } = await shop()
    const first = await ask("src/zoo.ts")
    expect(rowsIn(home).map(({ path }) => path)).toEqual(["src/zoo.ts", "src/zoo.ts", "src/zoo.ts"])
    expect(await ask("src/zoo.ts")).toEqual(first)
    mark(home)
    expect(await ask("src/zoo.ts")).toMatchObject({ proved: 0, likely: 24 })
    expect(await ask("src/zoo.ts:5")).toMatchObject({ proved: 0, likely: 1 })
  })

  test("is kept if only newer messages are learned, and computed again if older ones are", async () => {
    const { home, repository, ask } = await shop()
    await ask("src/zoo.ts")
    mark(home)
    session(home, repository.folder, LATER, "Later work", "src/later.ts", SECOND, 15)
    expect(await warmDex(home, ["sync"])).toMatchObject({ code: 0 })
    expect(await ask("src/zoo.ts")).toMatchObject({ proved: 0, likely: 24 })
    session(home, repository.folder, "44444444-2222-4333-8444-555555555555", "Between", "src/b.ts", FIRST, 11)
    expect(await warmDex(home, ["sync"])).toMatchObject({ code: 0 })
    expect(await ask("src/zoo.ts")).toMatchObject({ proved: 12, likely: 12 })
  })

  test("does not hide conversations that are learned later", async () => {
    const home = tempDir()
    const repository = makeRepository(join(home, "shop"))
    session(home, repository.folder, LATER, "Something else", "src/other.ts", SECOND, 9)
    put(repository, "src/zoo.ts", FIRST)
    commit(repository, "10:05", "zoo: quokkas")
    await warmDex(home, ["sync"])
    const ask = createAsk(home, repository)
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(FIRST.map(() => ""))
    expect(rowsIn(home)).toHaveLength(1)
    session(home, repository.folder, ONE, "Add the quokka table", "src/zoo.ts", FIRST, 10)
    await warmDex(home, ["sync"])
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(FIRST.map(() => refTo(ONE)))
  })

  test("is in no byte of the file once a conversation is forgotten", async () => {
    const { home, ask } = await shop()
    await ask("src/zoo.ts")
    expect(readFileSync(fileIn(home)).includes(ONE) || rowsIn(home).some(({ found }) => found.includes(ONE))).toBe(true)
    expect(await warmDex(home, ["forget", refTo(ONE), "--yes"])).toMatchObject({ code: 0 })
    expect(rowsIn(home)).toEqual([])
    expect(readFileSync(fileIn(home)).includes(ONE)).toBe(false)
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(
      EXPECTED.map((one) => (one === refTo(ONE) ? "" : one)),
    )
  })

  test("is not stored if something was learned in the meantime, and another version's is not used", async () => {
    const { home, repository, ask } = await shop()
    await ask("src/zoo.ts")
    const { lines, conversations, close } = openKnowledge(fileIn(home))
    const [row] = rowsIn(home)
    const hash = row!.hash
    const kept = (version: string) => lines.cachedOwners(repository.folder, version, [hash])
    const version = openKnowledgeFile({ path: fileIn(home) })
      .prepare("select value from meta where key = 'owners'")
      .pluck()
      .get() as string
    expect(kept(version)).toHaveLength(1)
    expect(kept("another")).toEqual([])
    const found = { hash, path: "src/zoo.ts", until: 0, found: "new" }
    lines.cacheOwners(repository.folder, { version, token: "older" }, [found])
    expect(kept(version)).not.toMatchObject([{ found: "new" }])
    lines.cacheOwners(repository.folder, { version: "another", token: conversations.learnedToken() }, [found])
    expect([kept(version), kept("another")]).toMatchObject([[], [{ found: "new" }]])
    expect(rowsIn(home)).toHaveLength(1)
    close()
  })

  test("is not stored for a shallow clone", async () => {
    const { home, repository, ask } = await shop()
    const tip = repository.git("rev-parse", "HEAD~1")
    repository.git("checkout", "-q", "--detach", tip)
    await ask("src/zoo.ts")
    expect(rowsIn(home)).toHaveLength(2)
    openKnowledgeFile({ path: fileIn(home) }).exec("delete from line_owner")
    put(repository, ".git/shallow", [tip])
    await ask("src/zoo.ts")
    expect(rowsIn(home)).toEqual([])
  })
})
