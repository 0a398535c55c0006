import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { observeUse } from "../../src/suggest/feedback/observe-use.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { claudeSession } from "../support/home.ts"
import { itemOf, NOW, suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"

const SESSION = "99999999-9999-4999-8999-999999999999"

test("a sync records which suggestions a session opened or edited, and leaves verdicts alone", async () => {
  const home = tempDir()
  const started = Date.now() - 3_600_000
  const edit = (file: string) => ({
    tool: { name: "Edit", input: { file_path: `/code/api/${file}`, old_string: "a", new_string: "b" }, output: "done" },
  })
  const session = (turns: Parameters<typeof claudeSession>[1]["turns"]) =>
    claudeSession(home, { id: SESSION, start: new Date(started).toISOString(), turns })
  const before = [{ user: "go on" }, edit("src/old.ts")]
  session(before)
  mkdirSync(join(home, ".dex"), { mode: 0o700 })
  const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
  onTestFinished(() => suggestions.close())
  const moment = { project: "/code/api", session: SESSION, at: started + 150_000 }
  const item = (key: string, more: Parameters<typeof itemOf>[0] = {}) => {
    const { ref: _, ...rest } = itemOf({ key })
    return { ...rest, ...more }
  }
  suggestions.save(
    suggestionOf("told", {
      moment,
      items: [
        item("edited later", { file: "src/a.ts" }),
        item("edited already", { file: "src/old.ts" }),
        item("opened in a shell", { ref: "codex:bbbb-2222#3" }),
        item("opened over MCP", { ref: "claude_code:cccc-3333#9" }),
        item("never", { file: "src/never.ts", ref: "codex:dddd-4444#1" }),
        item("dismissed", { file: "src/a.ts" }),
      ],
    }),
  )
  suggestions.save(suggestionOf("noted", { moment, items: [item("x", { file: "src/a.ts" })] }), { would: true })
  suggestions.setStatus("told", "dismissed", 6)
  await syncHome(home)
  expect(suggestions.get("told")?.items.map(({ status }) => status)).not.toContain("used")

  session([
    ...before,
    edit("src/old.ts"),
    edit("src/a.ts"),
    { tool: { name: "Bash", input: { command: "dex show codex:bbbb-2222#3 | head" }, output: "…" } },
    { tool: { name: "mcp__dex__dex_get", input: { ids: ["claude_code:cccc-3333"] }, output: "…" } },
  ])
  await syncHome(home)
  const used = suggestions.get("told")!
  expect(used.items.map(({ key, status }) => [key, status])).toEqual([
    ["edited later", "used"],
    ["edited already", "shown"],
    ["opened in a shell", "used"],
    ["opened over MCP", "used"],
    ["never", "shown"],
    ["dismissed", "dismissed"],
  ])
  expect(suggestions.get("noted")?.status).toBe("shown")
  expect(suggestions.weights()["kind:fix"]).toBeGreaterThan(0)
  const learnt = suggestions.weights()
  await syncHome(home)
  expect(suggestions.weights()).toEqual(learnt)
})

test("only sessions that changed, or received a suggestion, since the last time are read; without news none", async () => {
  const dir = tempDir()
  const suggestions = openSuggestions(join(dir, "suggest.db"))
  onTestFinished(() => suggestions.close())
  const history = (name: string) => {
    const store = openStore(join(dir, name))
    onTestFinished(() => store.close())
    return store
  }
  const store = history("history.db")
  let read: string[] = []
  const observe = async (of: HistoryReader = store) => {
    read = []
    const counted: HistoryReader = Object.create(of, {
      messages: {
        value: (...[ref, numbers]: Parameters<HistoryReader["messages"]>) => {
          read.push(ref.id)
          return of.messages(ref, numbers)
        },
      },
    })
    return observeUse(counted, suggestions, NOW + 1_000)
  }
  const write = (id: string, edits: string[], to = store) => {
    const messages = edits.map((file, i) =>
      textMessage(`${id}-${i}`, "done", {
        ...{ role: "assistant", at: NOW + 1 },
        effects: [{ type: "file", action: "edited", path: `/home/someone/api/${file}` }],
      }),
    )
    return to.writeUnit(
      unit(id, [conversation(id, [textMessage(`${id}-said`, "go on", { at: NOW - 1 }), ...messages])]),
    )
  }
  const tell = (id: string, session: string, file: string) =>
    suggestions.save(suggestionOf(id, { moment: { session }, items: [itemOf({ key: id, file })] }))
  const status = (id: string) => suggestions.get(id)?.status

  await observe()
  expect(read).toEqual([])
  for (const id of ["a", "b", "c"]) {
    await write(id, [])
    tell(`${id}-1`, id, "src/a.ts")
  }
  expect(await observe()).toBe(0)
  expect(read.toSorted()).toEqual(["a", "b", "c"])
  expect(await observe()).toBe(0)
  expect(read).toEqual([])

  await write("b", ["src/a.ts"])
  await write("untold", ["src/a.ts"])
  expect(await observe()).toBe(1)
  expect([read, status("b-1")]).toEqual([["b"], "used"])

  // Suggested before it was done, but stored after the history was read.
  await write("c", ["src/late.ts"])
  await observe()
  tell("c-2", "c", "src/late.ts")
  expect(await observe()).toBe(1)
  expect([read, status("c-2")]).toEqual([["c"], "used"])

  for (let i = 0; i < 70; i++) {
    await write(`m${i}`, ["src/many.ts"])
    tell(`many-${i}`, `m${i}`, "src/many.ts")
  }
  const used: number[] = []
  for (let i = 0; i < 3; i++) used.push(await observe())
  expect(used.reduce((sum, of) => sum + of)).toBe(70)
  expect([used[2], read]).toEqual([0, []])

  // Another history: everything is read again.
  const other = history("other.db")
  await write("a", ["src/a.ts"], other)
  expect(await observe(other)).toBe(1)
  expect(status("a-1")).toBe("used")
})
