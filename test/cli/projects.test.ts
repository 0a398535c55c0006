import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import {
  codeOf,
  commit,
  conversationsOfLines,
  createAsk,
  EXPECTED,
  FIRST,
  fill,
  ONE,
  put,
  refTo,
  SECOND,
  session,
  TWO,
} from "../support/blame-shop.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

/** Two conversations worked in `shop`; `clone` is another clone of it, in which no agent has worked. */
async function twoClones() {
  const home = tempDir()
  const shop = makeRepository(join(home, "shop"))
  shop.git("remote", "add", "origin", "https://github.com/acme/zoo.git")
  await fill(home, shop)
  const clone = cloneOf(shop.folder, join(home, "clone"))
  const inClone = async (...args: string[]) => {
    const { stdout, stderr, code } = await warmDex(home, [...args, "--json"], {}, clone.folder)
    if (stdout === "") throw new Error(`${code} ${stderr}`)
    return JSON.parse(stdout)
  }
  return { home, shop, clone, inClone, blame: createAsk(home, clone) }
}

function cloneOf(from: string, folder: string) {
  execFileSync("git", ["clone", "-q", `file://${from}`, folder])
  const clone = makeRepository(folder)
  clone.git("remote", "set-url", "origin", "git@github.com:acme/zoo.git")
  return clone
}

const refsIn = (answer: unknown) => [...new Set(JSON.stringify(answer).match(/claude_code:[0-9a-f-]{36}/g))].sort()

describe("in another clone of a repository", () => {
  test("every command knows what happened in the first", async () => {
    const { home, shop, clone, inClone, blame } = await twoClones()
    expect(conversationsOfLines(await blame("src/zoo.ts"))).toEqual(EXPECTED)
    expect(refsIn(await inClone("why", "src/zoo.ts:5", "--facts"))).toEqual([refTo(ONE)])
    expect(refsIn(await inClone("list", "--project", "github.com/acme/zoo"))).toEqual([refTo(ONE), refTo(TWO)])
    expect(refsIn(await inClone("list", "--project", "github.com/acme/web"))).toEqual([])
    expect(refsIn(await inClone("digest", "--from", "2026-01-01", "--to", "2026-02-01", "--facts"))).toEqual([
      refTo(ONE),
      refTo(TWO),
    ])
    await warmDex(home, ["note", "zebras are never striped"], {}, shop.folder)
    expect(JSON.stringify(await inClone("note"))).toContain("zebras are never striped")
    expect((await inClone("project")).projects[0]).toMatchObject({
      path: shop.folder,
      current: true,
      folders: [{ path: clone.folder }],
    })
    const doctor = await warmDex(home, ["doctor"], {}, clone.folder)
    expect(doctor.stdout.replace(/\s+/g, " ")).toMatch(/1 project\. \S*clone belongs to \S*shop: both have the remote/)
    expect(refsIn(await inClone("suggest", "--file", "src/zoo.ts"))).toContain(refTo(TWO))
    expect((await inClone("usage", "--project", clone.folder)).rows).toMatchObject([{ conversations: 2 }])
  })

  test("what is private in one is private in all, now and later", async () => {
    const { home, shop, clone, inClone } = await twoClones()
    await warmDex(home, ["project"], {}, clone.folder)
    await warmDex(home, ["private", clone.folder])
    const third = cloneOf(shop.folder, join(home, "third"))
    const seenIn = async (folder: string) => refsIn((await warmDex(home, ["list", "--json"], {}, folder)).stdout)
    expect(await seenIn(home)).toEqual([])
    for (const folder of [shop.folder, clone.folder, third.folder]) expect(await seenIn(folder)).toHaveLength(2)
    expect((await inClone("private")).projects).toEqual([shop.folder])
  })

  test("--only-here makes one folder private, which stays a project of its own", async () => {
    const { home, shop, clone, inClone } = await twoClones()
    await warmDex(home, ["private", "--only-here", clone.folder])
    await warmDex(home, ["sync"])
    expect((await inClone("private")).projects).toEqual([clone.folder])
    expect((await inClone("project")).projects).toMatchObject([
      { path: clone.folder, private: true, folders: [] },
      { path: shop.folder, private: false, folders: [] },
    ])
    expect((await createAsk(home, clone)("src/zoo.ts")).proved).toBe(0)
  })

  test("settings in one folder that forbid sharing forbid it in all", async () => {
    const { home, shop, clone } = await twoClones()
    await warmDex(home, ["project"], {}, clone.folder)
    const share = async () => (await warmDex(home, ["hub", "share", "--yes"], {}, shop.folder)).stderr
    expect(await share()).toContain("not logged in")
    writeFileSync(join(clone.folder, ".dex.json"), '{ "hub.share": false }')
    expect(await share()).toContain("cannot be shared, because hub.share is false")
  })

  test("forgetting the other folder forgets only what began there", async () => {
    const { home, shop, clone } = await twoClones()
    const THREE = "33333333-2222-4333-8444-555555555555"
    session(home, clone.folder, THREE, "Now the numbats", "src/zoo.ts", codeOf("numbat"), 14)
    await warmDex(home, ["sync"])
    const left = async () => refsIn((await warmDex(home, ["list", "--json"], {}, shop.folder)).stdout)
    expect(await left()).toEqual([refTo(ONE), refTo(TWO), refTo(THREE)])
    expect(await warmDex(home, ["forget", clone.folder, "--yes"])).toMatchObject({ code: 0 })
    expect(await left()).toEqual([refTo(ONE), refTo(TWO)])
    expect(await warmDex(home, ["forget", shop.folder, "--yes"])).toMatchObject({ code: 0 })
    expect(await left()).toEqual([])
  })
})

test("the first command in a fresh clone knows what happened in all folders that are gone", async () => {
  const home = tempDir()
  const shop = makeRepository(join(home, "shop"))
  put(shop, "src/zoo.ts", FIRST)
  const quokkas = { hash: commit(shop, "10:05", "zoo: the table of quokkas"), subject: "zoo: the table of quokkas" }
  put(shop, "src/zoo.ts", [...FIRST, ...SECOND])
  const wombats = { hash: commit(shop, "12:05", "zoo: the table of wombats"), subject: "zoo: the table of wombats" }
  session(home, "/gone/one", ONE, "Add the quokka table", "src/zoo.ts", FIRST, 10, quokkas)
  session(home, "/gone/two", TWO, "Now the wombats", "src/zoo.ts", SECOND, 12, wombats)
  await warmDex(home, ["sync"])
  const answer = await createAsk(home, shop)("src/zoo.ts")
  expect(conversationsOfLines(answer)).toEqual([...FIRST.map(() => refTo(ONE)), ...SECOND.map(() => refTo(TWO))])
})

test("a folder that was renamed is still the project, before and after the next sync", async () => {
  const { home, shop } = await twoClones()
  rmSync(join(home, "clone"), { recursive: true })
  renameSync(shop.folder, join(home, "renamed"))
  const ask = createAsk(home, { ...shop, folder: join(home, "renamed") })
  expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(EXPECTED)
  await warmDex(home, ["sync"])
  expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(EXPECTED)
})

test("a colleague's imported history counts in the same repository, and is named as theirs", async () => {
  const home = tempDir()
  const shop = makeRepository(join(home, "shop"))
  shop.git("remote", "add", "origin", "https://github.com/acme/zoo.git")
  await fill(home, shop)
  const numbats = codeOf("numbat")
  const hunk = { old_start: 0, old_lines: 0, new_start: 1, new_lines: numbats.length }
  const colleagues = openStore(join(home, "colleague.db"))
  const wrote = textMessage("m1", "", {
    role: "tool",
    at: Date.parse("2026-01-21T10:00:00Z"),
    parts: [
      {
        type: "tool_result",
        text: "done",
        origin: "local_tool",
        is_error: false,
        hunks: [{ path: "/home/dev/zoo/src/numbat.ts", ...hunk, lines: numbats.map((line) => `+${line}`) }],
      },
    ],
  })
  const place = { cwds: ["/home/dev/zoo"], project: "/home/dev/zoo" }
  await colleagues.writeUnit(unit("theirs", [conversation("theirs", [wrote], place)]))
  await colleagues.saveProjectIdentity("/home/dev/zoo", {
    git_remote: "github.com/acme/zoo",
    root_commit: shop.git("rev-list", "--max-parents=0", "HEAD"),
  })
  colleagues.close()
  put(shop, "src/numbat.ts", numbats)
  shop.git("add", "-A")
  shop.gitAt("2026-01-21T10:05:00Z", "commit", "-q", "-m", "zoo: numbats")
  const imported = await warmDex(home, ["import", join(home, "colleague.db"), "--json"])
  expect(JSON.parse(imported.stdout).projects).toEqual([{ from: "/home/dev/zoo", to: shop.folder }])
  const answer = await createAsk(home, shop)("src/numbat.ts")
  expect(conversationsOfLines(answer)).toEqual(numbats.map(() => "claude_code:theirs"))
  expect(answer.notes).toContain("Imported: claude_code:theirs is from dev.")
  expect((await warmDex(home, ["show", "claude_code:theirs"])).stdout).toContain("imported from dev")
})

test("an imported history cannot say what a folder of this machine is", async () => {
  const home = tempDir()
  const stranger = makeRepository(join(home, "stranger"))
  stranger.git("commit", "-q", "--allow-empty", "-m", "begin")
  const root_commit = stranger.git("rev-parse", "HEAD")
  const [known, unknown] = [join(home, "known"), join(home, "unknown")]
  for (const folder of [known, unknown]) mkdirSync(folder)
  session(home, stranger.folder, ONE, "Hello", "a.ts", FIRST, 10)
  session(home, known, TWO, "Mine", "a.ts", SECOND, 12)
  await warmDex(home, ["sync"])
  const hostile = openStore(join(home, "hostile.db"))
  for (const folder of [known, unknown]) {
    const theirs = conversation(folder, [textMessage(folder, "hi")], { cwds: [folder], project: folder })
    await hostile.writeUnit(unit(folder.slice(-7), [theirs]))
    await hostile.saveProjectIdentity(folder, { root_commit, git_remote: "github.com/acme/zoo" })
  }
  hostile.close()
  const { stdout } = await warmDex(home, ["import", join(home, "hostile.db"), "--json"])
  expect(JSON.parse(stdout).projects).toEqual([])
  const { projects } = JSON.parse((await warmDex(home, ["project", "--json"])).stdout)
  expect(projects.flatMap((one: { folders: unknown[] }) => one.folders)).toEqual([])
})

test("hostile remotes run nothing, join nothing and print no control characters", async () => {
  const { home, shop, inClone } = await twoClones()
  const made = join(home, "made-by-a-remote")
  const stranger = makeRepository(join(home, "stranger"))
  put(stranger, "a.txt", ["a"])
  commit(stranger, "10:00", "begin")
  const remotes = [
    `ext::sh -c "touch ${made}"`,
    `--upload-pack=touch ${made}`,
    "https://github.com/acme/zoo\u001b]0;owned\u0007",
    "https://github.com/acme/\u202ezoo",
    "https://github.com/acme/zoo'); drop table project; --",
    `file://${shop.folder}/../shop`,
    `https://github.com/${"acme/".repeat(2_000)}zoo`,
    "https://github.com/acme/zoo.git",
  ]
  for (const [i, address] of remotes.entries())
    stranger.git("config", "--add", `remote.r${i}[x]\u001b"$(id).url`, address)
  session(home, stranger.folder, "44444444-2222-4333-8444-555555555555", "Hello", "a.txt", codeOf("numbat"), 15)
  await warmDex(home, ["sync"])
  expect((await inClone("project")).projects.map(({ path }: { path: string }) => path)).toEqual([
    shop.folder,
    stranger.folder,
  ])
  const { stdout } = await warmDex(home, ["project"], {}, stranger.folder)
  expect(stdout).toContain("stranger")
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be printed
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  expect(existsSync(made)).toBe(false)
})
