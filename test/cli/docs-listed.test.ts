import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { DEX, dex as ownDex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

/** A home with a conversation, and a repository with documents and, beside it, a file that is not its own. */
async function cloned(list: unknown) {
  const home = tempDir()
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-11-15T09:00:00Z",
    turns: [{ user: "Hello there" }],
  })
  await syncHome(home)
  const repository = join(tempDir(), "api")
  mkdirSync(join(repository, "docs"), { recursive: true })
  mkdirSync(join(repository, ".git"))
  writeFileSync(join(repository, "docs/queue.md"), "# Queue\n\nThe quokka queue is drained by one worker.\n")
  writeFileSync(join(repository, "README.md"), "# Api\n\nThe wombat readme.\n")
  mkdirSync(join(repository, "../private"))
  writeFileSync(join(repository, "../private/secret.md"), "# Secret\n\nThe numbat secret.\n")
  const write = (value: unknown) => writeFileSync(join(repository, ".dex.json"), JSON.stringify({ collections: value }))
  write(list)
  const dex = (...args: string[]) => warmDex(home, args, {}, repository)
  const json = async (...args: string[]) => JSON.parse((await dex(...args, "--json")).stdout)
  const found = async (word: string) => (await json("search", word, "--in", "docs")).results.length
  return { home, repository, write, dex, json, found }
}

test("the documents that a repository names are added for a teammate after one yes, and a changed list asks again", async () => {
  const { dex, json, found, write, home } = await cloned([
    "docs",
    "README.md",
    "npm:react",
    "https://example.com/a.git",
  ])
  const named = await dex("docs")
  expect(named.stderr).toContain(
    "This repository names documents (.dex.json): docs, README.md. To add them: dex docs add",
  )
  expect(await dex("docs", "add")).toMatchObject({ code: 2, stderr: expect.stringContaining("Nothing was added yet") })
  expect([await found("quokka"), await found("wombat")]).toEqual([0, 0])

  const added = await dex("docs", "add", "--yes")
  expect(added).toMatchObject({ code: 0 })
  expect([await found("quokka"), await found("wombat")]).toEqual([1, 1])
  const { collections } = await json("docs")
  expect(collections.map(({ name }: { name: string }) => name)).toEqual(["api-README", "api-docs"])
  expect(added.stderr).toContain("To add it: dex docs add npm:react")
  expect(added.stderr).toContain("To add it: dex docs add https://example.com/a.git")
  expect((await dex("docs")).stderr).not.toContain("This repository names")

  write(["docs"])
  expect((await dex("docs")).stderr).toContain("This repository names documents (.dex.json): docs.")
  expect(Object.keys(JSON.parse(readFileSync(join(home, ".dex/projects.json"), "utf8")).documents)).toHaveLength(1)
  expect((await dex("search", "quokka", "--in", "docs")).stderr).not.toContain("there is no setting")
})

test("a hostile list does nothing: no path outside, no link, no hidden folder, no option, no invisible character, no long list", async () => {
  const { dex, json, repository, found, write } = await cloned([])
  symlinkSync("../private", join(repository, "link"))
  symlinkSync("../../private/secret.md", join(repository, "docs/secret.md"))
  mkdirSync(join(repository, ".hidden"))
  writeFileSync(join(repository, ".hidden/a.md"), "# A\n\nThe numbat secret.\n")
  mkdirSync(join(repository, "node_modules/x"), { recursive: true })
  const hostile = [
    ...[
      "../private",
      join(repository, "../private"),
      "~/private",
      "docs/../../private",
      "./docs",
      "/",
      "C:/private",
      "docs//x",
    ],
    ...["link", "link/secret.md", "docs/secret.md", ".hidden", ".git", "node_modules/x", "nothing", "src.ts"],
    ...[
      "--global",
      "docs\u001b[31m",
      "docs\u202egnp",
      "docs\u200b",
      "docs\nREADME.md",
      "docs;ls",
      "$(ls)",
      "`ls`",
      "a b",
    ],
    ...[
      "npm:x\u001b[31m",
      "npm:x y",
      "npm:$(ls)",
      "https://a.example/\u202egnp",
      "https://a.example/`ls`",
      "git@a:b;ls",
    ],
    ...["x".repeat(201), "", 7, null, ["docs"], { path: "docs" }],
  ]
  for (const entry of hostile) {
    write([entry])
    const { listed } = await json("docs", "add", "--yes")
    expect([entry, listed.paths, listed.refused.length]).toEqual([entry, [], 1])
  }
  for (const list of [Array(21).fill("docs"), "docs", { docs: true }, 1e9]) {
    write(list)
    expect((await json("docs", "add", "--yes")).listed).toMatchObject({ paths: [], refused: [{ entry: "" }] })
  }
  write(["docs\u001b[31mred", "\u202edocs"])
  const shown = await dex("docs")
  expect(shown.stdout + shown.stderr).not.toMatch(/[\u001b\u202e]/)
  expect((await json("docs")).collections).toEqual([])
  expect(await found("numbat")).toBe(0)
})

test("a link that takes the place of an agreed folder is not followed", async () => {
  const { dex, repository, found } = await cloned(["docs"])
  expect(await dex("docs", "add", "--yes")).toMatchObject({ code: 0 })
  renameSync(join(repository, "docs"), join(repository, "old"))
  symlinkSync("../private", join(repository, "docs"))
  const synced = await dex("docs", "sync")
  expect(synced.stdout + synced.stderr).toContain("a link took its place")
  expect((await dex("sync")).code).toBe(0)
  expect([await found("numbat"), await found("quokka")]).toEqual([0, 1])
  rmSync(join(repository, "docs"))
  renameSync(join(repository, "old"), join(repository, "docs"))
  writeFileSync(join(repository, "docs/queue.md"), "# Queue\n\nThe bilby queue.\n")
  expect(await dex("docs", "sync")).toMatchObject({ code: 0 })
  expect(await found("bilby")).toBe(1)
})

test("ask_documents warns at the start of a collection that does not exist, and starts", async () => {
  const { dex, home, repository } = await cloned(["docs"])
  expect(await dex("docs", "add", "--yes")).toMatchObject({ code: 0 })
  const start = (...names: string[]) => ownDex(home, ["serve", "agent", "-c", names.join(",")], {}, DEX, "", repository)
  expect(await start("api-docs")).toEqual({ code: 0, stdout: "", stderr: "" })
  const { code, stdout, stderr } = await start("api-docs", "nowhere")
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" })
  expect(stderr.replace(/\s+/g, " ")).toContain('There is no collection "nowhere". Existing collections: api-docs.')
})
