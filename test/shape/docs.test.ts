import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { agents, isDexSource, sourceIds } from "../../src/agents/registry.ts"
import { commands } from "../../src/cli/commands.ts"
import { asForm } from "../../src/cli/forms.ts"
import { listedCommands } from "../../src/cli/other-commands.ts"
import { referencePage } from "../../src/cli/reference.ts"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"

const ROOT = join(import.meta.dirname, "../..")
const read = (file: string) => readFileSync(join(ROOT, file), "utf8")

test("the reference page matches the declared tools", () => {
  expect(read("docs/reference.md")).toBe(referencePage(commands.map(({ tool }) => tool)))
})

test("every promise names a test that exists", () => {
  const named = read("docs/promises.md").split("\n").flatMap(promisedTests)
  expect(named.length).toBeGreaterThan(30)
  const missing = named.filter(({ file, title }) => !existsSync(join(ROOT, file)) || !read(file).includes(title))
  expect(missing).toEqual([])
})

/** The tests in the second column of a row: each file is followed by the titles of one or more of its tests. */
function promisedTests(row: string): { file: string; title: string }[] {
  let file = ""
  const proof = row.split(" | ")[1] ?? ""
  return [...proof.matchAll(/`((?:test|src\/testing)\/[^`]+)`|"([^"]+)"/g)].flatMap(([, named, title]) => {
    file = named ?? file
    return title === undefined ? [] : [{ file, title }]
  })
}

test("every row of the promises names a test, or says that there is none yet", () => {
  const rows = read("docs/promises.md")
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| promise"))
  expect(
    rows.filter((line) => !/`(?:test|src\/testing)\/[^`]+`: "/.test(line) && !/not yet|measured in/.test(line)),
  ).toEqual([])
})

test("docs/mcp.md lists every tool that agents get, with its command, and which of them write", () => {
  const page = read("docs/mcp.md")
  const rows = [...page.matchAll(/^\| `(\w+)` \| `dex ([^`]+)` \|/gm)].map(([, tool, command]) => `${tool} ${command}`)
  expect(rows.sort()).toEqual(offeredTools.map((tool) => `${tool.mcp.name} ${asForm(tool).name}`).sort())
  const writing = offeredTools.filter(({ mcp }) => mcp.writes).map(({ mcp }) => `\`${mcp.name}\``)
  expect(page.replaceAll("\n", " ")).toContain(
    `All tools but ${new Intl.ListFormat("en-GB").format(writing)} are read-only`,
  )
})

test("every good first issue names a file and a test that exist", () => {
  const section = read("CONTRIBUTING.md").split("\n## Good first issues\n")[1]!.split("\n## ")[0]!
  const rows = section.split("\n").filter((line) => /^\| (?!what is missing)/.test(line))
  expect(rows.length).toBeGreaterThan(5)
  for (const row of rows) {
    const [, , file, proof] = row.split(" | ").join("|").split("|")
    for (const cell of [file!, proof!]) expect(existsSync(join(ROOT, /`([^`]+)`/.exec(cell)![1]!)), row).toBe(true)
  }
})

test("the README is short, and its commands exist", () => {
  const readme = read("README.md")
  expect(readme.split("\n").length).toBeLessThan(170)
  const names = new Set(listedCommands(commands).flatMap(({ name, aliases = [] }) => [name, ...aliases]))
  const used = [...readme.matchAll(/^(?:\$ )?dex ([a-z]+)/gm)].map(([, name]) => name!)
  expect(used.length).toBeGreaterThan(4)
  expect(used.filter((name) => !names.has(name))).toEqual([])
})

test("docs/sources.md marks exactly those agents that were only read from a description", () => {
  const rows = read("docs/sources.md")
    .split("\n")
    .flatMap(
      (line) =>
        /^\| `(\w+)` \|/
          .exec(line)
          ?.slice(1)
          .map((source) => ({ source, line })) ?? [],
    )
  expect(rows.map(({ source }) => source).sort()).toEqual([...sourceIds].sort())
  const untried = rows.filter(({ line }) => /by description, not tried/i.test(line)).map(({ source }) => source)
  const described = agents.filter(({ basis }) => basis === "description").map(({ source }) => source)
  expect(untried.sort()).toEqual(described.sort())
})

test("every source folder is described in ARCHITECTURE.md, and every agent has a row in docs/sources.md", () => {
  const architecture = read("ARCHITECTURE.md")
  const folders = readdirSync(join(ROOT, "src"))
  expect(folders.filter((folder) => !architecture.includes(`\`${folder}/\``))).toEqual([])
  expect(
    sourceIds.filter((source) => !isDexSource(source) && !read("docs/sources.md").includes(`\`${source}\``)),
  ).toEqual([])
})

test("every link between documents has a target", () => {
  const pages = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    "SECURITY.md",
    "RELEASING.md",
    "CODE_OF_CONDUCT.md",
    ...readdirSync(join(ROOT, "docs"))
      .filter((file) => file.endsWith(".md"))
      .map((file) => `docs/${file}`),
  ]
  const broken = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map(([, target]) => join(page, "..", target!))
      .filter((target) => !existsSync(join(ROOT, target)))
      .map((target) => `${page}: ${target}`),
  )
  expect(broken).toEqual([])
})

test("no ignored file is tracked", () => {
  expect(execFileSync("git", ["ls-files", "-ci", "--exclude-standard"], { cwd: ROOT, encoding: "utf8" })).toBe("")
})
