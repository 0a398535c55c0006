import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { scopeOf } from "../../src/search/scope.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryWriter } from "../../src/store/history/store.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

// One folder in several spellings, as macOS and Windows have it.

const SPELLINGS = {
  darwin: ["/Users/dev/Caf\u00e9", "/users/DEV/cafe\u0301", "/Users/dev/CAFE\u0301/"],
  win32: ["C:\\Code\\Café", "c:/code/CAFÉ", "\\\\?\\c:\\Code\\café\\"],
} as const
const OPEN = { darwin: "/Users/dev/open", win32: "C:\\Code\\open" }

type Folding = keyof typeof SPELLINGS

function opened(file: string, platform: NodeJS.Platform): HistoryWriter {
  const store = openStore(file, { platform })
  onTestFinished(() => void store.close())
  return store
}

async function write(store: HistoryWriter, id: string, project: string, file?: string): Promise<void> {
  const effects =
    file === undefined ? {} : { effects: [{ type: "file" as const, path: file, action: "edited" as const }] }
  await store.writeUnit(
    unit(id, [conversation(id, [textMessage(`${id}-1`, "secret plan", effects)], { cwds: [project], project })]),
  )
}

describe.each(["darwin", "win32"] as const)("on %s", (platform: Folding) => {
  const [first, second, third] = SPELLINGS[platform]
  const elsewhere = OPEN[platform]

  test("a folder in two spellings is one project, under the spelling that came first", async () => {
    const store = opened(join(tempDir(), "history.db"), platform)
    await write(store, "a", first)
    await write(store, "b", second)
    expect(await store.projects()).toEqual([{ path: first, private: false }])
    expect((await store.list({ in_project: third, limit: 9, offset: 0 })).total).toBe(2)
  })

  test("a private project does not leak through another spelling of its path", async () => {
    const store = opened(join(tempDir(), "history.db"), platform)
    await write(store, "a", first)
    await write(store, "open", elsewhere)
    expect(await store.setPrivate(second, true)).toBe(true)
    await write(store, "b", third)
    const seen = async (inside: string) =>
      (await store.list({ inside, limit: 9, offset: 0 })).rows.map(({ ref }) => ref.id).sort()
    expect(await seen(elsewhere)).toEqual(["open"])
    expect(await seen(second)).toEqual(["a", "b", "open"])
    expect((await scopeOf(store, { inside: elsewhere }, platform))!.filters.excludedProjects).toEqual([first])
    expect(await scopeOf(store, { inside: third }, platform)).toEqual({ filters: {} })
    expect(await store.setPrivate(third, false)).toBe(true)
    expect(await seen(elsewhere)).toEqual(["a", "b", "open"])
  })

  test("a history that stored both spellings hides both as soon as it is opened, and shows both inside the project", async () => {
    const file = join(tempDir(), "history.db")
    const before = opened(file, "linux")
    await write(before, "a", first)
    await write(before, "b", second)
    await before.setPrivate(first, true)
    expect((await before.projects()).filter((one) => one.private)).toHaveLength(1)
    const store = opened(file, platform)
    expect((await store.projects()).filter((one) => one.private)).toHaveLength(2)
    expect((await store.list({ inside: elsewhere, limit: 9, offset: 0 })).total).toBe(0)
    expect((await store.list({ inside: third, limit: 9, offset: 0 })).total).toBe(2)
  })

  test("facts are stored and found under any spelling of their project and file", () => {
    const knowledge = openKnowledge(join(tempDir(), "knowledge.db"))
    onTestFinished(() => void knowledge.close())
    const id = knowledge.projects.projectId(first, platform)
    expect(knowledge.projects.projectId(second, platform)).toBe(id)
    expect(knowledge.projects.knownProject(third, platform)).toBe(id)
    expect(knowledge.projects.knownProject(elsewhere, platform)).toBe(undefined)
    const worked = { edits: 1, reads: 0, mentions: 0, added: 1, removed: 0, first_number: 1, last_number: 1 }
    knowledge.files.saveWorkedFiles(1, first, [
      { ...worked, path: "src/Token.ts" },
      { ...worked, path: "docs/Über.md" },
    ])
    const known = (file: string) => knowledge.files.knownSpelling(third, file, platform)
    expect(known("src/Token.ts")).toBe("src/Token.ts")
    expect(known("SRC/token.ts")).toBe("src/Token.ts")
    expect(known("docs/ÜBER.md")).toBe("docs/Über.md")
    expect(known("src/other.ts")).toBe("src/other.ts")
    expect(knowledge.files.knownSpelling(first, "SRC/token.ts", "linux")).toBe("SRC/token.ts")
  })
})

test("on macOS a file is found by any spelling of its name, and is below its project in any", async () => {
  const [first, second] = SPELLINGS.darwin
  const store = opened(join(tempDir(), "history.db"), "darwin")
  await write(store, "a", first, `${second}/src/Refre\u0301sh.ts`)
  expect(await store.filesOf({ source: "claude_code", id: "a" })).toEqual(["src/Refre\u0301sh.ts"])
  for (const file of ["src/refr\u00e9sh.ts", "REFR\u00c9SH", `${first}/src/`, "Cafe\u0301/src"])
    expect(
      (await store.touching(file)).map(({ id }) => id),
      file,
    ).toEqual(["a"])
  expect(await store.touching("src/refresh.ts")).toEqual([])
})

test("on Linux two spellings are two projects and two files", async () => {
  const [first, second] = SPELLINGS.darwin
  const store = opened(join(tempDir(), "history.db"), "linux")
  await write(store, "a", first, `${first}/src/A.ts`)
  await write(store, "b", second)
  expect(await store.projects()).toHaveLength(2)
  await store.setPrivate(first, true)
  expect((await store.list({ inside: second, limit: 9, offset: 0 })).total).toBe(1)
  expect(await store.touching("src/a.ts")).toEqual([])
})
