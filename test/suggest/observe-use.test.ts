import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { openSuggestions } from "../../src/store/suggestions.ts"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { itemOf, suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"

const SESSION = "99999999-9999-4999-8999-999999999999"

test("a sync notes what a session went on to open or edit of what it was told, and leaves verdicts alone", async () => {
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
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  expect(suggestions.get("told")?.items.map(({ status }) => status)).not.toContain("used")

  session([
    ...before,
    edit("src/old.ts"),
    edit("src/a.ts"),
    { tool: { name: "Bash", input: { command: "dex show codex:bbbb-2222#3 | head" }, output: "…" } },
    { tool: { name: "mcp__dex__dex_get", input: { ids: ["claude_code:cccc-3333"] }, output: "…" } },
  ])
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
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
  await dex(home, ["sync"])
  expect(suggestions.weights()).toEqual(learnt)
})
