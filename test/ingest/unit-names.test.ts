import { appendFileSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

test("a token in the name of a transcript, its folder or an unreadable file is in no file of dex, and the transcript is found again", async () => {
  const home = tempDir()
  const token = `ghp_${"k3JzQ8vN2xW7pL5mR9tY4bH6cD1fG0sAeUiO".slice(0, 36)}`
  const id = "11111111-1111-4111-8111-111111111111"
  const folder = join(home, ".claude", "projects", `-code-${token}`)
  const made = claudeSession(home, { id, start: "2026-11-03T10:00:00Z", turns: [{ user: "zebrafinch" }] })
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${id}.jsonl`)
  renameSync(made, path)
  mkdirSync(join(folder, `agent-${token}.jsonl`)) // a folder instead of a file
  expect((await dex(home, ["sync"])).code).toBe(0)
  const next = JSON.parse(readFileSync(path, "utf8").trim())
  appendFileSync(path, `${JSON.stringify({ ...next, uuid: "u2", message: { role: "user", content: "quokka" } })}\n`)
  expect((await dex(home, ["sync"])).stdout).toMatch(/Read 1 transcript of 1: 1 new message/)
  expect((await dex(home, ["sync"])).stdout + (await dex(home, ["sync"])).stderr).toMatch(/Nothing new|^$/)
  for (const entry of readdirSync(join(home, ".dex"), { recursive: true, withFileTypes: true }))
    if (entry.isFile())
      expect([entry.name, readFileSync(join(entry.parentPath, entry.name)).includes(token)]).toEqual([
        entry.name,
        false,
      ])
  const { stdout } = await dex(home, ["show", `claude_code:${id}`, "--json"])
  expect(stdout).toContain("quokka")
})

test("--redact-again redacts a stored name, and its file is not read twice", async () => {
  const home = tempDir()
  const token = `ghp_${"k3JzQ8vN2xW7pL5mR9tY4bH6cD1fG0sAeUiO".slice(0, 36)}`
  const id = "11111111-1111-4111-8111-111111111111"
  const folder = join(home, ".claude", "projects", `-code-${token}`)
  const made = claudeSession(home, { id, start: "2026-11-03T10:00:00Z", turns: [{ user: "zebrafinch" }] })
  mkdirSync(folder, { recursive: true })
  renameSync(made, join(folder, `${id}.jsonl`))
  expect((await dex(home, ["sync"])).code).toBe(0)
  const store = openStore(join(home, ".dex", "history.db"))
  const [[stored]] = [...(await store.knownUnits("claude_code"))] as [[string, unknown]]
  await store.renameUnit("claude_code", stored, {
    key: `-code-${token}/${id}.jsonl`,
    path: join(folder, `${id}.jsonl`),
  })
  store.close()
  expect((await dex(home, ["sync", "--redact-again"])).code).toBe(0)
  const again = openStore(join(home, ".dex", "history.db"))
  expect([...(await again.knownUnits("claude_code")).keys()]).toEqual([stored])
  expect((await again.stats()).messages).toBe(1)
  again.close()
})
