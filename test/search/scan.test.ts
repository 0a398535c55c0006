import { expect, test } from "vitest"
import type { SourceId } from "../../src/core/conversation.ts"
import { formatRef } from "../../src/core/ref.ts"
import { parseQuery } from "../../src/search/query.ts"
import { type SearchInput, searchHistory } from "../../src/search/search.ts"
import type { ConversationWrite } from "../../src/store/history/store.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { newHistory } from "../support/indexed.ts"

async function mixedHistory() {
  const { store, index } = newHistory()
  const write = (source: SourceId, id: string, more: Partial<ConversationWrite> = {}) =>
    store.writeUnit(
      unit(id, [conversation(id, [textMessage(id, `a quokka in ${id}`)], { ...more, cwds: [] })], { source }),
    )
  const page = { kind: "document" as const, project: undefined }
  await write("claude_code", "a")
  await write("codex", "b", { project: "/code/web" })
  await write("cursor", "c", { kind: "subagent" })
  await write("claude_code", "secret", { project: "/code/secret" })
  await write("docs", "handbook/wild.md", page)
  await write("docs", "react/wild.md", page)
  await write("docs", "web/wild.md", page)
  await write("docs", "hidden/wild.md", { ...page, project: "/code/secret" })
  const collection = { kind: "folder" as const, origin: ".", root: "/docs", added_at: 1, problems: [] }
  for (const name of ["handbook", "react"]) await store.saveCollection({ name, ...collection })
  await store.saveCollection({ name: "web", project: "/code/web", ...collection })
  await store.saveCollection({ name: "hidden", project: "/code/secret", ...collection })
  await store.setPrivate("/code/secret", true)
  await index.follow(store)
  return async (more: Partial<SearchInput>, withIndex: boolean) => {
    const query = parseQuery("quokka")
    const input = { by: "conversation" as const, limit: 20, offset: 0, ...more, query }
    const { hits } = await searchHistory(store, withIndex ? index : undefined, input)
    return hits.map(({ row }) => formatRef(row.ref)).sort()
  }
}

test("without an index, every filter selects what it selects with one, and nothing private", async () => {
  const found = await mixedHistory()
  const A = { source: "claude_code", id: "a" } as const
  const filters: Partial<SearchInput>[] = [
    {},
    { sources: ["claude_code"] },
    { sources: ["claude_code", "codex"] },
    { sources: ["docs"] },
    { excludedConversations: [A] },
    { conversation: A },
    { conversation: { source: "claude_code", id: "secret" } },
    { kinds: ["person"] },
    { kinds: ["subagent", "person"] },
    { project: "web" },
    { project: "secret" },
    { among: "history" },
    { among: "docs" },
    { among: "docs", noGlobal: true },
    { among: "docs", inside: "/code/web" },
    { noGlobal: true },
    { inside: "/code/secret" },
    { collections: ["react"] },
    { collections: ["react", "web"] },
    { collections: ["hidden"] },
    { collections: ["none"] },
    { collections: ["react"], excludedConversations: [{ source: "docs", id: "react/wild.md" }] },
  ]
  const answers = async (withIndex: boolean) =>
    Promise.all(filters.map(async (filter) => ({ filter, found: await found(filter, withIndex) })))
  const indexed = await answers(true)
  expect(indexed.map(({ found }) => found.length)).toEqual([
    5, 1, 2, 2, 4, 1, 0, 2, 3, 1, 0, 3, 2, 0, 3, 3, 7, 1, 2, 0, 0, 0,
  ])
  expect(await answers(false)).toEqual(indexed)
})
