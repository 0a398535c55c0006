import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createPlacePatterns } from "../../src/hub-client/for-others.ts"
import { createOutgoing, DEFAULT_SHARED } from "../../src/hub-client/outgoing.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

const ID = "77777777-7777-4777-8777-777777777777"
const REF = `claude_code:${ID}`

const home = () =>
  synced((at) =>
    claudeSession(at, {
      id: ID,
      start: "2026-11-05T10:00:00Z",
      turns: [{ user: "please look at the walrus" }, { assistant: "It sleeps." }],
    }),
  )

async function listed(at: string, ...args: string[]) {
  return JSON.parse((await dex(at, ["list", ...args, "--json"])).stdout).conversations as {
    id: string
    title: string
    tags?: string[]
  }[]
}

test("a star, tags and a title are kept, shown, found and taken away again", async () => {
  const at = await home()
  const marked = await dex(at, ["note", REF, "--star", "--tag", "zoo,#Ice", "--title", "The \x1b[31msleeping walrus"])
  expect(marked).toMatchObject({ code: 0, stderr: "" })
  expect(marked.stdout).toMatch(/^★ #zoo #ice The .*sleeping walrus\n$/)
  expect(marked.stdout).not.toContain("\x1b")
  const shown = { id: REF, title: expect.stringContaining("sleeping walrus"), tags: ["zoo", "ice", "starred"] }
  for (const args of [["--starred"], ["--tag", "zoo"], ["--tag", "ICE"], ["--starred", "--tag", "ice"]])
    expect(await listed(at, ...args)).toMatchObject([{ ...shown, tags: expect.arrayContaining(shown.tags) }])
  expect(await listed(at, "--tag", "none")).toEqual([])
  expect((await dex(at, ["list", "--starred"])).stdout).toContain("★ #zoo #ice The")
  // The title is in the index at once.
  const found = await dex(at, ["search", "sleeping", "walrus"])
  expect(found.stdout).toContain(REF)
  expect(found.stderr).not.toContain("not up to date")
  for (const args of [["tag:zoo"], ["walrus", "tag:zoo"], ["walrus", "--tag", "zoo"], ["-F", "walrus", "tag:zoo"]])
    expect((await dex(at, ["search", ...args])).stdout).toContain(REF)
  expect((await dex(at, ["search", "walrus", "tag:none"])).code).toBe(1)
  expect((await dex(at, ["show", REF])).stdout).toContain("sleeping walrus")
  // A sync changes nothing of it.
  await dex(at, ["sync"])
  expect(await listed(at, "--starred")).toHaveLength(1)
  await dex(at, ["note", REF, "--no-star", "--no-tag", "zoo", "--title", ""])
  expect(await listed(at, "--starred")).toEqual([])
  expect(await listed(at, "--tag", "ice")).toMatchObject([{ title: "Please look at the walrus", tags: ["ice"] }])
})

test("says what is wrong", async () => {
  const at = await home()
  for (const [args, problem] of [
    [["note", "--star"], "Which conversation?"],
    [["note", "two words", "--star"], "Which conversation?"],
    [["note", REF, "--tag", "two words"], "one word"],
    [["note", "claude_code:none", "--star"], "claude_code:none"],
  ] as const) {
    const { code, stderr } = await dex(at, [...args])
    expect({ args, code, stderr }).toEqual({ args, code: 2, stderr: expect.stringContaining(problem) })
  }
})

test("a title is redacted, and forgetting deletes it with the conversation", async () => {
  const at = await home()
  const secret = `ghp_${"0123456789abcdefghij"}ABCDEFGHIJ012345`
  await dex(at, ["note", REF, "--title", `quokkatitle ${secret}`, "--tag", "wombattag"])
  const stored = () =>
    readdirSync(join(at, ".dex"))
      .filter((name) => /\.db/.test(name))
      .map((name) => readFileSync(join(at, ".dex", name), "latin1"))
      .join("")
  expect(stored()).toContain("quokkatitle")
  expect(stored()).not.toContain(secret.slice(4))
  await dex(at, ["forget", REF, "--yes"])
  expect(stored()).not.toContain("quokkatitle")
  expect(stored()).not.toContain("wombattag")
})

test("a backup has them; an import only brings them with the notes, and never over what is here", async () => {
  const at = await home()
  const file = join(tempDir(), "backup.db")
  await dex(at, ["note", REF, "--star", "--title", "Mine"])
  expect((await dex(at, ["backup", file])).code).toBe(0)
  await dex(at, ["note", REF, "--no-star", "--title", "Newer"])
  const restored = tempDir()
  expect((await dex(restored, ["restore", file])).code).toBe(0)
  expect(await listed(restored, "--starred")).toMatchObject([{ id: REF, title: "Mine" }])
  const other = await home()
  await dex(other, ["import", file])
  expect(await listed(other, "--starred")).toEqual([])
  await dex(other, ["import", file, "--with-notes"])
  expect(await listed(other, "--starred")).toMatchObject([{ id: REF, title: "Mine" }])
  await dex(at, ["import", file, "--with-notes"])
  expect(await listed(at, "--starred")).toEqual([])
})

test("nothing of it is sent to a hub", async () => {
  const at = await home()
  await dex(at, ["note", REF, "--title", "quokkatitle", "--tag", "wombattag"])
  const store = openStore(join(at, ".dex", "history.db"))
  const ref = { source: "claude_code", id: ID } as const
  const row = (await store.conversation(ref))!
  expect(row.title?.text).toBe("quokkatitle")
  const places = createPlacePatterns({ home: "/home/dev" })
  const { head } = createOutgoing(row, await store.messages(ref), await store.versions(ref), {
    what: DEFAULT_SHARED,
    folders: ["/code/api"],
    home: "/home/dev",
    platform: "linux",
    places,
  })
  store.close()
  expect(head.title?.text).toBe("Please look at the walrus")
  expect(JSON.stringify(head)).not.toMatch(/quokkatitle|wombattag/)
})
