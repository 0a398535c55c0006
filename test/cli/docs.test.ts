import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { reindex } from "../../src/tools/sync/sync.ts"
import { environment } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const HOOKS = `# Hooks

All hooks run before the zeppelin lands.

## Rules

Never call a hook in a loop.

### Exceptions

There are none.

## Testing

A hook test takes a free port.

\`\`\`sh
# not a heading
npm test
\`\`\`
`

async function withDocs(): Promise<string> {
  const home = tempDir()
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-10-03T10:00:00Z",
    turns: [{ user: "Does the zeppelin test need a free port?" }, { assistant: "Yes, the hook test takes port 0." }],
  })
  mkdirSync(join(home, "guide/deep"), { recursive: true })
  writeFileSync(join(home, "guide/hooks.md"), HOOKS)
  writeFileSync(join(home, "guide/deep/start.md"), "# Getting started\n\nInstall it, then read about hooks.\n")
  await syncHome(home)
  expect(await dex(home, ["docs", "add", "./guide"])).toMatchObject({
    code: 0,
    stdout: "guide: 2 documents, 2 new or changed.\n",
  })
  return home
}

const json = async (home: string, ...args: string[]) => JSON.parse((await dex(home, [...args, "--json"])).stdout)

test("documents and conversations are one ranked list; a hit in a document is named by its section", async () => {
  const home = await withDocs()
  const ids = async (...args: string[]) =>
    (await json(home, "search", ...args)).results.map((row: { id: string }) => row.id)
  expect((await ids("free port hook test")).slice(0, 2).sort()).toEqual([
    "claude_code:11111111-1111-4111-8111-111111111111",
    "docs:guide/hooks.md§Testing",
  ])
  expect((await ids("free port hook test", "--in", "docs"))[0]).toBe("docs:guide/hooks.md§Testing")
  expect(await ids("free port hook test", "--in", "history")).toEqual([
    "claude_code:11111111-1111-4111-8111-111111111111",
  ])
  expect(await ids("hooks", "-c", "guide")).toHaveLength(2)
  expect(await dex(home, ["search", "hooks", "-c", "nothing"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is no collection "nothing". Existing collections: guide.'),
  })
})

test("a row of the list names its section", async () => {
  const home = await withDocs()
  const found = await dex(home, ["search", "never loop", "--in", "docs"])
  expect(found.stdout).toContain("docs:guide/hooks.md§Rules · 4 sections")
})

test("shows a section with its subsections, by heading, anchor or number", async () => {
  const home = await withDocs()
  const contents = async (ref: string) =>
    (await json(home, "show", ref)).conversations[0].messages.map((message: { content: string }) => message.content)
  const rules = ["## Rules\n\nNever call a hook in a loop.\n", "### Exceptions\n\nThere are none.\n"]
  const trimmed = (texts: string[]) => texts.map((text) => text.trim())
  for (const ref of [
    "docs:guide/hooks.md§Rules",
    "docs:guide/hooks.md§rules",
    "guide/hooks.md#2",
    "docs:guide/hooks.md#2",
  ])
    expect(trimmed(await contents(ref))).toEqual(trimmed(rules))
  expect(await contents("docs:guide/hooks.md")).toHaveLength(4)
  expect(await dex(home, ["show", "docs:guide/hooks.md§Rule"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("dex docs outline docs:guide/hooks.md"),
  })
})

test("lists collections, documents and outlines, with the file's own lines", async () => {
  const home = await withDocs()
  expect(await json(home, "docs")).toMatchObject({
    collections: [{ name: "guide", kind: "folder", origin: "./guide", documents: 2, sections: 5, problems: [] }],
  })
  expect(await json(home, "list", "--in", "docs")).toMatchObject({ collections: [{ name: "guide" }] })
  const { documents } = await json(home, "docs", "list", "guide")
  expect(documents.map((one: { id: string; title: string }) => [one.id, one.title])).toEqual([
    ["docs:guide/deep/start.md", "Getting started"],
    ["docs:guide/hooks.md", "Hooks"],
  ])
  const { sections } = await json(home, "docs", "outline", "guide/hooks.md")
  const lines = HOOKS.split("\n")
  for (const { headings, first_line } of sections) expect(lines[first_line - 1]).toContain(headings.at(-1))
  expect(sections.map((one: { headings: string[] }) => one.headings)).toEqual([
    ["Hooks"],
    ["Hooks", "Rules"],
    ["Hooks", "Rules", "Exceptions"],
    ["Hooks", "Testing"],
  ])
})

test("shows a document within a budget, and says how to continue", async () => {
  const home = await withDocs()
  const show = (...args: string[]) => json(home, "docs", "show", "guide/hooks.md", ...args)
  const whole = await show()
  expect(whole).toMatchObject({ estimated_tokens: expect.any(Number) })
  expect(whole).not.toHaveProperty("truncated")
  const most = whole.estimated_tokens - 20
  const cut = await show("--max-tokens", String(most))
  expect(cut.estimated_tokens).toBeLessThanOrEqual(most)
  expect(cut.truncated).toMatch(/1 section left out\. Continue: dex docs show 'docs:guide\/hooks\.md§Testing'/)
  expect(await dex(home, ["docs", "show", "guide/hooks.md", "--max-tokens", "20"])).toMatchObject({ code: 2 })
})

test("reads only changed documents, and forgets deleted ones", async () => {
  const home = await withDocs()
  expect(await dex(home, ["docs", "sync"])).toMatchObject({ stdout: "guide: 2 documents, 0 new or changed.\n" })
  writeFileSync(join(home, "guide/hooks.md"), HOOKS.replace("Never call", "Always call"))
  rmSync(join(home, "guide/deep"), { recursive: true })
  await syncHome(home)
  expect((await json(home, "search", "always loop", "--in", "docs")).results).toHaveLength(1)
  expect(await dex(home, ["search", "install getting started", "--in", "docs"])).toMatchObject({ code: 1 })
  // A section keeps its number: refs survive an edit.
  expect((await json(home, "show", "docs:guide/hooks.md#2")).conversations[0].messages[0].content).toContain("Always")
  expect(await dex(home, ["docs", "remove", "guide"])).toMatchObject({ code: 0 })
  expect(await dex(home, ["search", "zeppelin", "--in", "docs"])).toMatchObject({ code: 1 })
  expect((await json(home, "search", "zeppelin")).results).toHaveLength(1)
})

test("reports a folder that is temporarily missing, and loses nothing", async () => {
  const home = await withDocs()
  renameSync(join(home, "guide"), join(home, "moved"))
  await syncHome(home)
  expect((await json(home, "search", "zeppelin", "--in", "docs")).results).toHaveLength(1)
  const { collections } = await json(home, "docs")
  expect(collections[0]).toMatchObject({ documents: 2, problems: [expect.stringContaining("guide")] })
  expect((await dex(home, ["docs", "sync"])).stderr).toContain("Not read: ")
})

test("conversations are counted without documents", async () => {
  const home = await withDocs()
  expect(await json(home, "stats")).toMatchObject({
    total_conversations: 1,
    total_messages: 2,
    sources: { claude_code: 1 },
  })
  expect(await json(home, "list", "--all")).toMatchObject({ total: 1, left_out: {} })
  expect(await json(home, "sources")).not.toMatchObject({ sources: expect.arrayContaining([{ source: "docs" }]) })
})

test("never reads a file outside a collection", async () => {
  const home = await withDocs()
  writeFileSync(join(home, "outside.md"), "# Outside\n\nxylophone\n")
  symlinkSync(join(home, "outside.md"), join(home, "guide/link.md"))
  mkdirSync(join(home, "other"))
  writeFileSync(join(home, "other/secret.md"), "# Secret\n\nxylophone\n")
  symlinkSync(join(home, "other"), join(home, "guide/folder"))
  expect((await dex(home, ["docs", "sync"])).code).toBe(0)
  expect(await dex(home, ["search", "xylophone"])).toMatchObject({ code: 1 })
})

test("a project's documents are not found in other projects, and a private project's only inside it", async () => {
  const home = await withDocs()
  const elsewhere = join(home, "elsewhere")
  mkdirSync(elsewhere)
  const inside = (cwd: string, ...args: string[]) => dex(home, args, {}, cwd)
  const renamed = <R extends { stderr: string }>(run: R) => ({ ...run, stderr: run.stderr.replace("nosuch", "guide") })
  expect(await inside(elsewhere, "search", "free port", "--in", "docs")).toMatchObject({ code: 1 })
  expect(await inside(elsewhere, "search", "free port", "-c", "guide")).toMatchObject({ code: 0 })
  expect(await dex(home, ["private", home])).toMatchObject({ code: 0 })
  const hidden = await inside(elsewhere, "search", "free port", "-c", "guide")
  expect(hidden).toEqual(await inside(elsewhere, "search", "free port", "-c", "nosuch").then(renamed))
  expect(hidden.code).toBe(2)
  expect((await inside(elsewhere, "docs")).stdout).not.toContain("guide")
  expect((await inside(elsewhere, "show", "docs:guide/hooks.md")).code).toBe(2)
  expect(await inside(home, "search", "free port", "--in", "docs")).toMatchObject({ code: 0 })
})

test("secrets in documents are redacted, and line numbers stay those of the file", async () => {
  const home = await withDocs()
  const key = `-----BEGIN RSA PRIVATE KEY-----\n${"QUJD".repeat(16)}\n${"REVG".repeat(16)}\n-----END RSA PRIVATE KEY-----`
  writeFileSync(join(home, "guide/keys.md"), `# Keys\n\n${key}\n\n## After\n\nwalrus\n`)
  expect((await dex(home, ["docs", "sync"])).code).toBe(0)
  const shown = await dex(home, ["docs", "show", "guide/keys.md"])
  expect(shown.stdout).not.toContain("QUJDQUJD")
  const { sections } = await json(home, "docs", "outline", "guide/keys.md")
  expect(sections.at(-1)).toMatchObject({ headings: ["Keys", "After"], first_line: 8 })
})

test("several folders are added at once, each as its own collection", async () => {
  const home = tempDir()
  for (const name of ["one", "two", "three"]) {
    mkdirSync(join(home, name))
    writeFileSync(join(home, name, "a.md"), `# ${name}\n\nText about ${name}.\n`)
  }
  const { code, stdout } = await dex(home, ["docs", "add", "one", "two", "three", "--json"])
  expect(code).toBe(0)
  expect(JSON.parse(stdout).synced).toMatchObject([{ name: "one" }, { name: "three" }, { name: "two" }])
  const named = await dex(home, ["docs", "add", "one", "two", "--name", "all"])
  expect([named.code, named.stderr]).toEqual([2, expect.stringContaining("--name works with a single collection")])
})

test("rebuilding the index counts documents too, so progress never exceeds the total", async () => {
  const home = tempDir()
  mkdirSync(join(home, "guide"))
  for (const n of [1, 2, 3]) writeFileSync(join(home, "guide", `${n}.md`), `# ${n}\n`)
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-11-04T10:00:00Z",
    turns: [{ user: "x" }],
  })
  await syncHome(home)
  await dex(home, ["docs", "add", "guide"])
  const seen: [number, number][] = []
  const own = createDex({
    env: environment(home, {}),
    cwd: home,
    version: "0.0.0",
    onProgress: ({ phase, done, total }) => void (phase === "indexing" && seen.push([done, total])),
  })
  onTestFinished(() => own.close())
  await reindex.run(own, {})
  expect(seen.at(-1)).toEqual([4, 4])
})
