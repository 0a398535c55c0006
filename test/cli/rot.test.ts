import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { openSqlite } from "../../src/store/engine.ts"
import { dex } from "../support/dex.ts"
import { synced } from "../support/synced.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const SIDEBAR = "claude_code:22222222-2222-4222-8222-222222222222"

describe("a flipped bit in a block of messages", () => {
  test("leaves out what cannot be read, says so, and stops no command", async () => {
    const home = await synced()
    flipBody(home, AUTH)
    for (const args of [
      ["search", "mutex"],
      ["show", AUTH],
      ["timeline", AUTH],
      ["scan", AUTH],
      ["handover", AUTH],
      ["reindex"],
    ]) {
      const run = await dex(home, args)
      expect([args, run.stderr]).toEqual([args, expect.stringContaining(AUTH)])
      expect(run.stderr).toMatch(/damaged in history\.db.*`dex sync` restores what it can/)
    }
    expect((await dex(home, ["list"])).stdout).toMatch(/Refresh token race/)
    expect((await dex(home, ["show", SIDEBAR])).stderr).not.toMatch(/damaged/)
    expect((await dex(home, ["search", "flickers"])).stdout).toMatch(/sidebar/i)
  })
})

function flipBody(home: string, ref: string): void {
  const db = openSqlite(join(home, ".dex", "history.db"))
  const id = db.prepare("select id from conversation where source || ':' || native_id = ?").pluck().get(ref)
  const data = db.prepare("select data from body where conversation_id = ?").pluck().get(id) as Buffer
  data[data.length >> 1]! ^= 4
  db.prepare("update body set data = ? where conversation_id = ?").run(data, id)
  db.close()
}
