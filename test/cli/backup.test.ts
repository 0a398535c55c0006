import { execFileSync } from "node:child_process"
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { runKilledAt } from "../support/killed-at.ts"
import { makeRepository } from "../support/repository.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

async function json(home: string, ...args: string[]) {
  const { code, stdout, stderr } = await dex(home, [...args, "--json"])
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

/** Every message of every conversation, with its ref: what two histories must agree on. */
async function content(home: string): Promise<Record<string, string>> {
  const store = openStore(join(home, ".dex", "history.db"))
  const all: Record<string, string> = {}
  for (const { ref, project } of (await store.list({ limit: 1000, offset: 0 })).rows)
    for (const message of await store.messages(ref))
      all[`${ref.id}#${message.number}`] = JSON.stringify([project, message.role, message.parts])
  store.close()
  return all
}

describe("backup and restore", () => {
  test("creates the folder of a backup for its owner only; reports in one sentence if it cannot", async () => {
    const home = await synced()
    expect(await json(home, "backup", "~/backups/new/dex.db".replace("~", home))).toMatchObject({ conversations: 3 })
    for (const made of ["backups", "backups/new"]) expect(statSync(join(home, made)).mode & 0o777).toBe(0o700)
    writeFileSync(join(home, "note"), "")
    const { code, stderr } = await dex(home, ["backup", join(home, "note", "dex.db")])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^dex: A backup cannot be written to .*note \(.*\)\. Choose another location\.\n$/)
  })

  test("a backup is a complete history that only its owner can read, and restoring it returns every message", async () => {
    const home = await synced()
    const file = join(home, "dex.db")
    const made = await json(home, "backup", file)
    expect(made).toMatchObject({ conversations: 3, file })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(existsSync(`${file}.partial`)).toBe(false)
    const fresh = tempDir()
    expect(await json(fresh, "restore", file)).toMatchObject({ conversations: 3, messages: made.messages })
    expect(await content(fresh)).toEqual(await content(home))
    expect((await dex(fresh, ["search", "mutex"])).stdout).toContain("Refresh token race")
  })

  test("on request a backup replaces an older one of the same history, and no other file", async () => {
    const home = await synced()
    const file = join(home, "dex.db")
    await json(home, "backup", file)
    claudeSession(home, {
      id: "44444444-4444-4444-8444-444444444444",
      start: "2026-11-12T09:00:00Z",
      turns: [{ user: "more" }],
    })
    await syncHome(home)
    const before = readFileSync(file)
    expect(await dex(home, ["backup", file])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/is an older backup of this history\. To replace it: dex backup \S+ --replace/),
    })
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(await json(home, "backup", file, "--replace")).toMatchObject({ conversations: 4 })
    const other = await synced()
    expect(await dex(other, ["backup", file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("backup of another history"),
    })
    writeFileSync(join(home, "notes.txt"), "mine")
    expect((await dex(home, ["backup", join(home, "notes.txt")])).code).toBe(2)
    expect(readFileSync(join(home, "notes.txt"), "utf8")).toBe("mine")
  })

  test("a backup made during a sync is a complete history of one instant, and the next sync continues from it", async () => {
    const home = tempDir()
    for (let i = 0; i < 60; i++) {
      claudeSession(home, {
        id: `777777${String(i).padStart(2, "0")}-7777-4777-8777-777777777777`,
        start: "2026-11-12T09:00:00Z",
        turns: Array.from({ length: 40 }, (_, n) => ({ user: `question ${i} ${n} ${"word ".repeat(400)}` })),
      })
    }
    const file = join(home, "during.db")
    const running = dex(home, ["sync"])
    let made = await dex(home, ["backup", file, "--json"])
    while (made.code !== 0) made = await dex(home, ["backup", file, "--replace", "--json"]) // until there is something to copy
    await running
    const fresh = tempDir()
    cpSync(join(home, ".claude"), join(fresh, ".claude"), { recursive: true, preserveTimestamps: true })
    await json(fresh, "restore", file)
    expect(Object.keys(await content(fresh)).length).toBe(JSON.parse(made.stdout).messages)
    await syncHome(fresh)
    expect(await content(fresh)).toEqual(await content(home))
  })

  test("refuses a damaged backup, and does not replace an existing history by accident", async () => {
    const home = await synced()
    const file = join(home, "dex.db")
    await json(home, "backup", file)
    const bytes = readFileSync(file)
    const store = openStore(join(home, ".dex", "history.db"))
    store.close()
    const damaged = join(home, "damaged.db")
    const block = bytes.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd])) // where a compressed block begins
    const broken = Buffer.from(bytes)
    broken.fill(0, block + 8, block + 40)
    writeFileSync(damaged, broken)
    const fresh = tempDir()
    expect((await dex(fresh, ["restore", damaged])).code).toBe(2)
    expect(existsSync(join(fresh, ".dex", "history.db"))).toBe(false)
    const refused = await dex(home, ["restore", file])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("dex import") })
    const replaced = await json(home, "restore", file, "--replace")
    expect(existsSync(replaced.kept)).toBe(true)
  })
})

describe("import", () => {
  const laptop = "55555555-5555-4555-8555-555555555555"

  test("imports every message once; importing twice, or messages that both machines have, changes nothing", async () => {
    const [home, other] = [await synced(), tempDir()]
    smallHome(other) // the same three conversations
    claudeSession(other, {
      id: laptop,
      start: "2026-11-12T09:00:00Z",
      turns: [{ user: "narwhal" }, { assistant: "osprey" }],
    })
    await syncHome(other)
    const file = join(other, "laptop.db")
    await json(other, "backup", file)
    const before = await content(home)
    expect(await json(home, "import", file)).toMatchObject({ messages: 2, conversations: 1, forgotten: 0 })
    const after = await content(home)
    expect(Object.keys(after)).toHaveLength(Object.keys(before).length + 2)
    expect(after).toEqual(await content(other))
    expect((await json(home, "search", "narwhal")).total).toBe(1)
    expect(await json(home, "import", file)).toMatchObject({ messages: 0, conversations: 0 })
    expect(await content(home)).toEqual(after)
    expect((await dex(home, ["sync"])).stderr + (await dex(home, ["sync"])).stdout).toMatch(/Nothing new/)
    expect(await content(home)).toEqual(after)
  })

  test("importing back and forth between two machines duplicates nothing", async () => {
    const [home, other] = [await synced(), tempDir()]
    claudeSession(other, { id: laptop, start: "2026-11-12T09:00:00Z", turns: [{ user: "narwhal" }] })
    await syncHome(other)
    for (let round = 0; round < 3; round++) {
      await json(home, "backup", join(home, "desk.db"), "--replace")
      await json(other, "import", join(home, "desk.db"))
      await json(other, "backup", join(other, "laptop.db"), "--replace")
      await json(home, "import", join(other, "laptop.db"))
    }
    expect(await content(home)).toEqual(await content(other))
    const store = openStore(join(home, ".dex", "history.db"))
    expect((await store.knownUnits("claude_code")).size).toBe(7) // three of its own, twice with where they came back from, and the other's
    store.close()
  })

  test("a project in another folder is found by its remote or its first commit, and resume goes there", async () => {
    const [home, other] = [tempDir(), tempDir()]
    const [there, here] = [join(other, "work", "api"), join(home, "src", "api")]
    const { git } = makeRepository(there)
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("remote", "add", "origin", "git@github.com:acme/api.git")
    mkdirSync(join(home, "src"))
    execFileSync("git", ["clone", "-q", there, here], { stdio: "pipe" })
    execFileSync("git", ["-C", here, "remote", "set-url", "origin", "https://someone:secret@github.com/acme/api"])
    claudeSession(other, {
      id: laptop,
      cwd: there,
      start: "2026-11-12T09:00:00Z",
      turns: [
        { user: "narwhal" },
        { tool: { name: "Edit", input: { file_path: join(there, "src", "auth.ts") }, output: "ok" } },
      ],
    })
    claudeSession(home, {
      id: "66666666-6666-4666-8666-666666666666",
      cwd: here,
      start: "2026-11-12T09:00:00Z",
      turns: [{ user: "here" }],
    })
    await syncHome(other)
    await syncHome(home)
    const file = join(home, "laptop.db")
    await json(other, "backup", join(other, "laptop.db"), "--replace")
    copyFileSync(join(other, "laptop.db"), file)
    execFileSync("rm", ["-rf", there]) // another machine
    const imported = await json(home, "import", file)
    expect(imported.projects).toEqual([{ from: there, to: here }])
    const list = await json(home, "list", "--project", here)
    expect(list.conversations.map(({ id }: { id: string }) => id.slice(12, 16)).sort()).toEqual(["5555", "6666"])
    const { folder, problem } = JSON.parse((await dex(home, ["resume", `claude_code:${laptop}`, "--json"])).stdout)
    expect(folder).toBe(here)
    expect(problem).toContain("on another machine")
    const store = openStore(join(home, ".dex", "history.db"))
    expect(await store.filesOf({ source: "claude_code", id: laptop })).toEqual(["src/auth.ts"])
    store.close()
  })

  test("forgotten conversations stay forgotten, and projects that are private there become private here", async () => {
    const [home, other] = [await synced(), await synced()]
    await dex(other, ["private", "/code/web"])
    await json(other, "backup", join(other, "laptop.db"), "--replace")
    await dex(home, ["forget", "claude_code:11111111-1111-4111-8111-111111111111", "--yes"])
    const imported = await json(home, "import", join(other, "laptop.db"))
    expect(imported).toMatchObject({ forgotten: 1, messages: 0, made_private: ["/code/web"] })
    expect((await dex(home, ["search", "mutex"])).code).toBe(1)
  })

  test("an import that is killed at any point never makes a private project readable elsewhere", async () => {
    const [home, other] = [tempDir(), tempDir()]
    for (let i = 0; i < 12; i++)
      claudeSession(other, {
        id: `88888888-8888-4888-8888-8888888888${10 + i}`,
        cwd: i % 3 === 0 ? "/code/open" : "/clients/acme",
        start: "2026-11-12T09:00:00Z",
        turns: [{ user: `${i % 3 === 0 ? "daylight" : "moonlight"} ${i}` }],
      })
    await syncHome(other)
    await dex(other, ["private", "/clients/acme"])
    await json(other, "backup", join(other, "laptop.db"))
    let midway = 0
    for (let n = 1, ended = false; !ended; n += 3) {
      ended = await runKilledAt(home, ["import", join(other, "laptop.db")], n, "blocks")
      const store = openStore(join(home, ".dex", "history.db"))
      const shown = (await store.list({ limit: 100, offset: 0 })).rows
      const kept = (await store.list({ limit: 100, offset: 0, inside: "/clients/acme" })).rows
      store.close()
      expect(
        shown.filter(({ project }) => project !== "/code/open"),
        `killed at ${n}`,
      ).toEqual([])
      if (kept.length > shown.length && kept.length < 12) midway++
      expect((await dex(home, ["search", "moonlight"])).stdout, `killed at ${n}`).not.toContain("moonlight")
      if (ended) expect([shown.length, kept.length]).toEqual([4, 12])
    }
    expect(midway).toBeGreaterThan(1)
  })
})
