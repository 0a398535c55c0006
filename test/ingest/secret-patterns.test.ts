import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { Subscription } from "../../src/core/suggestion.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { matchingSubscriptions } from "../../src/suggest/subscriptions/matching.ts"
import { random } from "../redact/secrets.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

// A person can also use a secret as a name: in a document's path, a collection's folder, or what a subscription
// watches.

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const token = (seed: number) => `${"gh"}p_${random(seed).of(WORD, 36)}`

/** Every cell of a table, except the columns that name the folder on disk. */
function cellsOf(file: string, table: string, but: string[] = []): string {
  const db = openSqlite(file, { readonly: true })
  const rows = db.prepare(`select * from "${table}"`).all() as Record<string, unknown>[]
  db.close()
  return rows
    .flatMap((row) => Object.entries(row).flatMap(([name, value]) => (but.includes(name) ? [] : [String(value)])))
    .join("\n")
}

test("a token in the name of a document, of a lone file or of a collection's folder is stored and shown redacted", async () => {
  const home = tempDir()
  const [inFile, inFolder, alone] = [token(1), token(2), token(3)]
  const folder = join(home, `notes-${inFolder}`)
  mkdirSync(folder)
  writeFileSync(join(folder, `${inFile}.md`), "# Opening\n\nHow the store is opened.\n")
  writeFileSync(join(home, `${alone}.md`), "# Closing\n\nHow the store is closed.\n")
  const shown: string[] = []
  for (const args of [
    ["docs", "add", folder],
    ["docs", "add", join(home, `${alone}.md`), "--name", "alone"],
    ["docs", "sync"],
    ["docs", "list"],
    ["docs", "list", "--json"],
    ["search", "store", "--json"],
  ]) {
    const { code, stdout, stderr } = await warmDex(home, args)
    expect([args[1], code, stderr]).toEqual([args[1], 0, expect.any(String)])
    shown.push(stdout, stderr)
  }
  const history = join(home, ".dex/history.db")
  const kept = ["unit", "conversation", "collection"].map((table) => cellsOf(history, table, ["root"])).join("\n")
  for (const secret of [inFile, inFolder, alone]) {
    expect(shown.join("\n")).not.toContain(secret.slice(4, 20))
    expect(kept.replaceAll(folder, "")).not.toContain(secret.slice(4, 20))
  }
  expect(kept).toContain("[REDACTED:github-token]")
  const found = JSON.parse(shown.at(-2)!) as { results: { id: string }[] }
  expect(found.results).toHaveLength(2)
  const again = await warmDex(home, ["docs", "sync", "--json"])
  expect(JSON.parse(again.stdout)).toMatchObject({
    synced: [
      { documents: 1, changed: 0, removed: 0 },
      { documents: 1, changed: 0, removed: 0 },
    ],
  })
})

test("a collection's name or git URL may not contain a secret", async () => {
  const home = tempDir()
  mkdirSync(join(home, "notes"))
  writeFileSync(join(home, "notes/a.md"), "# A\n\ntext\n")
  for (const args of [
    ["docs", "add", join(home, "notes"), "--name", token(4)],
    ["docs", "add", `https://git.invalid/${token(4)}/docs.git`],
  ]) {
    const { code, stderr } = await warmDex(home, args)
    expect(code).toBe(2)
    expect(stderr).toMatch(/(?:holds|contains) a (?:secret|password or token)/)
    expect(stderr).not.toContain(token(4).slice(4, 20))
  }
})

test("a token in what a subscription watches is stored and shown redacted, and the file is still noticed", async () => {
  const home = tempDir()
  const name = token(5)
  const hook = `${"https://hooks.slack.com/services"}/T${random(6).of("ABCDEFGH0123", 10)}/B0${random(7).of(WORD, 32)}`
  const made = await warmDex(home, ["subscribe", `file:src/${name}.ts`, `topic:${name}`, "--json"])
  expect(made.code, made.stderr).toBe(0)
  const webhook = await warmDex(home, ["subscribe", "file:src/**", "--url", hook, "--json"])
  const listed = await warmDex(home, ["subscriptions", "--json"])
  for (const { stdout } of [made, webhook, listed]) {
    expect(stdout).not.toContain(name.slice(4, 20))
    expect(stdout).not.toContain(hook.slice(-20))
  }
  expect(listed.stdout).toContain("file:src/[REDACTED:github-token].ts")
  const file = join(home, ".dex/suggest.db")
  expect(readFileSync(file).toString("latin1")).not.toContain(name.slice(4, 20))
  const subscriptions = openSuggestions(file)
  const all = subscriptions.subscriptions()
  subscriptions.close()
  const trigger = { project: all[0]!.project, at: Date.now() }
  const hit = matchingSubscriptions(all, { ...trigger, file: "src/[REDACTED:github-token].ts" })
  expect(hit.map(({ subscription }) => subscription.id)).toContain((JSON.parse(made.stdout) as Subscription).id)
})

test("--redact-again removes patterns that an older version stored", async () => {
  const home = tempDir()
  expect((await warmDex(home, ["subscribe", "file:src/old.ts"])).code).toBe(0)
  const file = join(home, ".dex/suggest.db")
  const db = openSqlite(file)
  const column = (db.prepare("select patterns from subscription").pluck().get() as string).replace("old", token(8))
  db.prepare("update subscription set patterns = ?").run(column)
  db.close()
  expect((await warmDex(home, ["sync", "--redact-again"])).code).toBe(0)
  expect(cellsOf(file, "subscription")).toContain("src/[REDACTED:github-token].ts")
})
