import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex, rebuildIndex } from "../../src/store/index/search-index.ts"
import { createSeenWords, scanWords } from "../../src/store/index/vocabulary.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

function wordsOf(...texts: string[]): string[] {
  const found = new Map<string, number>()
  const seen = createSeenWords()
  for (const text of texts) scanWords(text, 1, seen, found)
  return [...found.keys()].sort()
}

test("the words of a text are its tokens that consist of letters, in lower case", () => {
  expect(wordsOf("Configured the checkPoint, twice: CONFIGURED")).toEqual(["checkpoint", "configured", "twice"])
  expect(wordsOf("an abc in it", "abc123def node24 v1", "snake_cased some-dashed")).toEqual([
    "cased",
    "dashed",
    "snake",
    "some",
  ])
  expect(wordsOf("Größe 東京タワー конфигурация")).toEqual(["größe", "конфигурация"])
  expect(wordsOf("x".repeat(64), "y".repeat(65))).toEqual(["x".repeat(64)])
  expect(wordsOf("", "last")).toEqual(["last"])
})

test("each word is found once for each bit, among any number of words", () => {
  const found = new Map<string, number>()
  const seen = createSeenWords()
  const name = (n: number) => `word${[...String(n)].map((digit) => String.fromCharCode(97 + Number(digit))).join("")}`
  const text = Array.from({ length: 20_000 }, (_, n) => name(n)).join(" ")
  scanWords(text, 1, seen, found)
  expect(found.size).toBe(20_000)
  found.clear()
  scanWords(text, 1, seen, found)
  expect(found.size).toBe(0)
  scanWords(text, 4, seen, found)
  expect([found.size, found.get(name(19_999))]).toEqual([20_000, 4])
})

function world() {
  const folder = tempDir()
  const store = openStore(join(folder, "history.db"))
  const path = join(folder, INDEX_FILE)
  const index = openIndex(path)
  onTestFinished(() => {
    store.close()
    index.close()
  })
  const write = (id: string, ...texts: string[]) =>
    store.writeUnit(
      unit(id, [
        conversation(
          id,
          texts.map((text, n) => textMessage(`${id}${n}`, text)),
        ),
      ]),
    )
  const forget = async (...ids: string[]) => {
    await store.forget(ids.map((id) => ({ source: "claude_code", id })))
    await index.follow(store)
    await index.purge(store)
  }
  const words = async (beginning: string) => (await index.words(beginning)).map(({ word }) => word)
  return { store, path, index, write, forget, words }
}

test("the index has the words as written, most common first, as conversations are added and grow", async () => {
  const { store, index, write, words } = world()
  await write("a", "The responsibility is shared")
  await write("b", "Responses respond")
  await write("c", "Responses")
  await index.follow(store)
  expect(await index.words("respon")).toEqual([
    { word: "responses", spread: 2 },
    { word: "respond", spread: 1 },
    { word: "responsibility", spread: 1 },
  ])
  await write("a", "The responsibility is shared", "and so are responses, responsively")
  await index.follow(store)
  expect((await index.words("responses"))[0]).toEqual({ word: "responses", spread: 3 })
  expect(await words("responsiv")).toEqual(["responsively"])
  expect((await index.wordsOfLength(6, 7)).map(({ word }) => word)).toEqual(["respond", "shared"])
})

test("a forgotten conversation's words are gone, unless another one contains them; other forms count as other words", async () => {
  const { index, store, write, forget, words } = world()
  // More conversations than groups, so that some share theirs.
  for (let n = 0; n < 70; n++) await write(`c${n}`, n % 2 === 0 ? "plain talk of zebrafish" : "plain talk")
  await write("x", "zebrafishes, zebrafish and quokkas, plainly")
  await index.follow(store)
  expect(await words("zebra")).toEqual(["zebrafish", "zebrafishes"])
  await forget("x")
  expect(await words("")).toEqual(["plain", "talk", "zebrafish"])
  await forget(...Array.from({ length: 35 }, (_, n) => `c${2 * n}`))
  expect(await words("")).toEqual(["plain", "talk"])
})

test("reading in steps gives the same words as reading at once", async () => {
  const { store, path, index, write, forget } = world()
  for (let n = 0; n < 40; n++) {
    await write(`c${n}`, `common and rarely${String.fromCharCode(97 + (n % 26))} number ${n}`)
    await index.follow(store)
    if (n % 10 === 9) await forget(`c${n - 5}`, `c${n - 2}`)
  }
  const list = async (from: typeof index) => (await from.words("")).map(({ word }) => word).sort()
  const before = await list(index)
  index.close()
  await rebuildIndex(path, store)
  const rebuilt = openIndex(path)
  onTestFinished(() => rebuilt.close())
  expect(before).toEqual(await list(rebuilt))
  expect(before).toContain("rarelya")
})
