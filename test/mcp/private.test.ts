import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { connect, connectOnce } from "./client.ts"

// What an agent may learn about projects that are private, or not its own; and the name under which it writes.

const SECRET = "77777777-7777-4777-8777-777777777777"
const home = sharedTempDir()
const [own, acme] = [join(home, "code/own"), join(home, "clients/acme")]

beforeAll(async () => {
  const own_repository = makeRepository(own)
  const other = makeRepository(join(home, "code/other"))
  for (const { folder, git } of [own_repository, other]) {
    writeFileSync(join(folder, "a.ts"), "export const a = 1\n")
    git("add", "-A")
    git("commit", "-q", "-m", "start")
  }
  mkdirSync(acme, { recursive: true })
  const session = { cwd: acme, start: "2026-11-03T10:00:00Z" }
  const turns = [{ user: "Where is the walrusword kept?", assistant: "In the cellar." }]
  claudeSession(home, { ...session, id: SECRET, title: "The walrus affair", turns })
  claudeSession(home, { ...session, id: SECRET.replaceAll("7", "8"), cwd: own, turns: [{ user: "Hello there" }] })
  await dex(home, ["private", acme])
  await syncHome(home)
})

describe("over MCP", () => {
  const client = connectOnce(home, { cwd: own })
  const answerOf = async (name: string, input: object) =>
    (await client().call(name, input)).content[0]!.text.replace(/\nfresh_as_of: .*/, "")

  test("a word that only a private project contains is answered like one that nobody wrote", async () => {
    const answers = [
      await answerOf("dex_search", { query: "walrusword" }),
      await answerOf("dex_search", { query: "zebraword" }),
    ]
    expect(answers[0]!.replaceAll("walrusword", "X")).toBe(answers[1]!.replaceAll("zebraword", "X"))
    expect(JSON.stringify(answers)).not.toContain("private")
    expect((await dex(home, ["search", "walrusword"], {}, own)).stderr).toContain("1 match in private projects")
  })

  test("a private conversation is as unknown as one that does not exist, by its id or a prefix of it", async () => {
    for (const id of [`claude_code:${SECRET}`, SECRET, SECRET.slice(0, 8)]) {
      const nobody = id.replaceAll("7", "6")
      for (const [name, input] of [
        ["dex_get", (ref: string) => ({ ids: [ref] })],
        ["dex_timeline", (ref: string) => ({ id: ref })],
      ] as const)
        expect((await answerOf(name, input(id))).replaceAll("7", "6")).toBe(await answerOf(name, input(nobody)))
    }
    expect((await dex(home, ["show", SECRET], {}, own)).stderr).toContain(acme)
  })

  test("suggestions for a private project are like those for an unknown project", async () => {
    const { structuredContent } = await client().call("context_suggest", { project_id: acme })
    expect(structuredContent).toMatchObject({ suggestions: [] })
    expect(JSON.stringify(structuredContent)).not.toContain("private")
  })

  test("dex_why answers for the server's own project, and does not reveal what else there is", async () => {
    expect(await answerOf("dex_why", { target: "a.ts" })).toMatch(/^No conversation is known to have written this/)
    for (const target of [
      "../other/a.ts",
      join(home, "code/other/a.ts"),
      join(home, "clients"),
      "/etc/passwd",
      "../none",
    ])
      expect(await answerOf("dex_why", { target })).toBe(
        `There is no file or commit called "${target}" here. Give a file, a commit or a range of commits.`,
      )
    expect((await dex(home, ["why", "../other/a.ts"], {}, own)).stderr).toContain("No conversation is known")
  })

  test.each(["you, confirmed", "person", "The Person", "you", "YOU (confirmed)"])(
    "a client that calls itself %j is an agent",
    async (name) => {
      const other = await connect(home, { cwd: own, name })
      const words = [`from ${JSON.stringify(name)}`]
      const { structuredContent } = await other.call("dex_note", { words })
      expect(structuredContent).toMatchObject({ notes: [{ by: "an agent", confirmed: false }] })
      await syncHome(home)
      const { stdout } = await dex(home, ["note"], {}, own)
      const [, by] = stdout.slice(stdout.indexOf(words[0]!)).split("\n")
      expect(by).toMatch(/^ {4}by an agent, not confirmed /)
    },
  )
})

test("the list of what forgetting a private folder would delete has no titles outside that folder", async () => {
  const outside = await dex(home, ["forget", acme], {}, own)
  expect(outside.stdout).toContain(`claude_code:${SECRET}`)
  expect(outside.stdout).toContain("(private)")
  expect(outside.stdout).not.toContain("walrus")
  expect((await dex(home, ["forget", acme, "--json"], {}, own)).stdout).not.toContain("walrus")
  expect((await dex(home, ["forget", acme], {}, acme)).stdout).toContain("The walrus affair")
})
