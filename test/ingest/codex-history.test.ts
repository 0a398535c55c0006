import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { homeOf } from "../agents/contract.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const read = async (home: string, ...args: string[]) => JSON.parse((await dex(home, [...args, "--json"])).stdout)
const listed = async (home: string): Promise<{ id: string; message_count: number }[]> =>
  (await read(home, "list", "--all")).conversations

const ID = "01a1f5a3-a4a0-7a91-bfae-7a08dae393b2"

/** A home with a rollout of the thread that otherwise only the database contains. */
async function withRollout() {
  const home = await homeOf("test/fixtures/codex/0.169-history-only")
  const day = join(home, ".codex/sessions/2026/11/19")
  const [other] = readdirSync(day)
  const rollout = join(day, `rollout-2026-11-19T21-08-24-${ID}.jsonl`)
  const text = readFileSync(join(day, other!), "utf8").replaceAll("019f0000-0000-7000-8000-000000000031", ID)
  writeFileSync(rollout, text.replaceAll("msg_68b1c2d3e4f5a6b7c8d90001", "msg_68b1c2d3e4f5a6b7c8d90002"))
  return { home, rollout }
}

test("a thread whose rollout is deleted stays as it was, and is not there twice", async () => {
  const { home, rollout } = await withRollout()
  await syncHome(home)
  const before = await listed(home)
  expect(before.map(({ message_count }) => message_count)).toEqual([1, 1])
  rmSync(rollout)
  await syncHome(home)
  expect(await listed(home)).toEqual(before)
})

test("a thread that was read from the database is read from its rollout as soon as there is one", async () => {
  const { home, rollout } = await withRollout()
  const aside = join(home, "aside.jsonl")
  copyFileSync(rollout, aside)
  rmSync(rollout)
  await syncHome(home)
  const counts = async () => (await listed(home)).map(({ id, message_count }) => [id, message_count])
  expect(await counts()).toContainEqual([`codex:${ID}`, 9])
  copyFileSync(aside, rollout)
  await syncHome(home)
  expect(await counts()).toContainEqual([`codex:${ID}`, 1])
  expect(await counts()).toHaveLength(2)
})

test("a thread that was forgotten does not come back from the database", async () => {
  const { home, rollout } = await withRollout()
  await syncHome(home)
  expect((await dex(home, ["forget", `codex:${ID}`, "--yes"])).code).toBe(0)
  rmSync(rollout)
  const db = new DatabaseSync(join(home, ".codex/thread_history_1.sqlite"))
  db.exec("update thread_items set created_at_ms = created_at_ms + 1")
  db.close()
  await syncHome(home)
  expect((await listed(home)).map(({ id }) => id)).not.toContain(`codex:${ID}`)
})
