import { appendFileSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { jsonl, putSession, text, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { hasTmux, openScreen } from "../support/tmux.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const ORIGINAL = "aaaaaaaa-1111-4111-8111-111111111111"
const FORK = "ffffffff-2222-4222-8222-222222222222"

/** A conversation, and a fork of it: a copy of its first two messages under the same keys, and one of its own. */
async function forked() {
  const home = tempDir()
  const original = writer({ sessionId: ORIGINAL }, "o")
  original.prompt("The zebrafinch refuses to sing")
  original.answer("m1", [text("It needs a nest first.")])
  const copied = original.records.map((record) => ({ ...record, sessionId: FORK }))
  original.prompt("Then build it a kingfisher nest")
  putSession(home, original.records, ORIGINAL)
  await syncHome(home)
  const fork = writer({ sessionId: FORK }, "f")
  fork.goTo("o2")
  fork.prompt("Give it a nightingale instead")
  const file = putSession(home, [...copied, ...fork.records], FORK)
  await syncHome(home)
  expect(await shown(home, FORK)).toMatchObject({ fork_of: `claude_code:${ORIGINAL}` })
  return { home, file }
}

async function shown(home: string, id: string) {
  const { code, stdout } = await dex(home, ["show", id, "--json"])
  return code === 0 ? (JSON.parse(stdout) as { conversations: object[] }).conversations[0] : undefined
}

async function found(home: string, words: string): Promise<string[]> {
  const { stdout } = await dex(home, ["search", words, "--json"])
  const { results } = JSON.parse(stdout) as { results: { id: string }[] }
  return results.map(({ id }) => id.slice("claude_code:".length).slice(0, 36))
}

describe("a conversation and a fork with copies of its messages", () => {
  test("forgetting the fork leaves the original, and says so", async () => {
    const { home } = await forked()
    const unconfirmed = await dex(home, ["forget", FORK])
    expect(unconfirmed.stdout).toMatch(
      /Not deleted: another conversation, in which copies of the same messages stay readable/,
    )
    expect(unconfirmed.stderr).toMatch(/--yes, or --yes --copies/)
    const { code, stdout } = await dex(home, ["forget", FORK, "--yes"])
    expect(code).toBe(0)
    expect(stdout.match(/^forgotten: .*$/gm)).toEqual([`forgotten: claude_code:${FORK}`])
    expect(stdout).toMatch(/Not deleted: another conversation.* run `dex\sforget` on it/s)
    expect(stdout).toContain(`claude_code:${ORIGINAL}`)
    expect(await shown(home, ORIGINAL)).toBeDefined()
    expect(await shown(home, FORK)).toBeUndefined()
    expect(await found(home, "kingfisher")).toEqual([ORIGINAL])
  })

  test("forgetting the original leaves the fork, where search now finds the copies, and neither comes back", async () => {
    const { home, file } = await forked()
    expect(await found(home, "zebrafinch")).toEqual([ORIGINAL])
    const { stdout } = await dex(home, ["forget", ORIGINAL, "--yes", "--json"])
    expect(JSON.parse(stdout)).toMatchObject({
      forgotten: [`claude_code:${ORIGINAL}`],
      kept_copies: [`claude_code:${FORK}`],
    })
    const later = writer({ sessionId: FORK }, "g")
    later.goTo("f1")
    later.prompt("And a goldfinch")
    appendFileSync(file, jsonl(later.records))
    for (const sync of ["sync", "sync"]) {
      expect(await found(home, "zebrafinch")).toEqual([FORK])
      expect(await found(home, "kingfisher")).toEqual([])
      expect(await shown(home, ORIGINAL)).toBeUndefined()
      expect(JSON.stringify(await shown(home, FORK))).not.toContain(ORIGINAL)
      expect(await dex(home, [sync])).toMatchObject({ code: 0 })
    }
    expect(await found(home, "goldfinch")).toEqual([FORK])
    expect(await dex(home, ["doctor"])).toMatchObject({ code: 0 })
  })

  test("--copies forgets both", async () => {
    const { home } = await forked()
    const { stdout } = await dex(home, ["forget", FORK, "--yes", "--copies"])
    expect(stdout.match(/^forgotten: .*$/gm)).toHaveLength(2)
    expect(stdout).not.toContain("Not deleted")
    await syncHome(home)
    expect(await shown(home, ORIGINAL)).toBeUndefined()
    expect(await shown(home, FORK)).toBeUndefined()
  })

  test.skipIf(!hasTmux)("a terminal asks which to forget, and can forget only one", async () => {
    const { home } = await forked()
    const screen = await openScreen(home, { columns: 90, rows: 30 })
    await screen.type(`dex forget ${FORK}`)
    await screen.keys("Enter")
    await screen.shows(/Yes, and the one with copies too/)
    await screen.keys("Down", "Enter")
    await screen.shows(`forgotten: claude_code:${FORK}`)
    await screen.shows(/never read again/)
    expect(await shown(home, ORIGINAL)).toBeDefined()
    expect(await shown(home, FORK)).toBeUndefined()
  })
})
