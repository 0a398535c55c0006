import { readdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { homeOf } from "../agents/contract.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

type Check = { name: string; status: string; message: string; mend?: string; unknown_tables?: unknown }

const checkOf = async (home: string, source: string): Promise<Check> =>
  JSON.parse((await dex(home, ["doctor", "--json"])).stdout).checks.find(({ name }: Check) => name === source)

function fileIn(home: string, name: string): string {
  const file = readdirSync(home, { recursive: true, encoding: "utf8" }).find((path) => path.endsWith(name))
  return join(home, file!)
}

test.each([
  ["opencode", "2.0-upgraded", "opencode.db"],
  ["opencode", "1.18.33-tools-and-subagent", "opencode.db"],
  ["crush", "0.2-tools-agent", "crush.db"],
  ["goose", "1.35-tools-compaction-subagent", "sessions.db"],
  ["hermes", "database", "state.db"],
  ["zed", "0.3.0-tools-subagent", "threads.db"],
  ["openclaw", "2026.9.6-database", "openclaw-agent.sqlite"],
  ["kiro", "cli-database", "data.sqlite3"],
  ["cursor", "3.12-editor", join("globalStorage", "state.vscdb")],
])(
  "tables that dex does not know in a database of %s (%s) are named by doctor and sources, with their rows",
  async (source, fixture, file) => {
    const home = await homeOf(join("test/fixtures", source, fixture))
    await syncHome(home)
    const before = await checkOf(home, source)
    expect(before.message).not.toContain("does not know and does not read")

    const path = fileIn(home, file)
    const db = new DatabaseSync(path)
    db.exec(`create table session_v3 (id text); insert into session_v3 values ('a'), ('b');
    create table "odd ""name" (id text); insert into "odd ""name" values ('a');
    create table nothing_yet (id text); create virtual table words using fts5 (text); insert into words values ('x');
    create view seen as select * from session_v3`)
    db.close()
    await syncHome(home)

    const after = await checkOf(home, source)
    expect(after.status).toBe("note")
    expect(after.message).toContain(
      `${path} has 2 tables that this dex does not know and does not read: session_v3 (2 rows), odd "name (1 row)`,
    )
    const { sources } = JSON.parse((await dex(home, ["sources", "--json"])).stdout)
    const found = sources.find((one: { source: string }) => one.source === source)
    expect(found.unknown_tables).toEqual([{ path, tables: { session_v3: 2, 'odd "name': 1 } }])
    expect(after.unknown_tables).toEqual(found.unknown_tables)
    expect(before.unknown_tables).toBeUndefined()
    expect((await dex(home, ["sources"])).stdout).toMatch(/that dex does not read, rows: 2 × session_v3/)
  },
)
