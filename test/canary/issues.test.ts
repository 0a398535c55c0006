import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { micromark } from "micromark"
import { expect, test } from "vitest"
import type { AgentReport, Difference } from "../../e2e/canary/difference.ts"
import { issueOf, plain } from "../../e2e/canary/issues.ts"
import { tempDir } from "../support/temp.ts"

const HOSTILE = [
  "$(rm -rf ~)",
  "@everyone",
  "`code` ``` <script>alert(1)</script>",
  "a\n\n# heading\n- [link](https://evil.example) ![x](https://evil.example/x.png)",
  "--title=other",
  "\u202Ereversed \u0000 \u001B[31m",
  "closes #1 owner/repo#2",
  "::set-output name=x::y",
]

function reportOf(...names: string[]): AgentReport {
  const differences = names.map((name): Difference => ({ what: "record", name, count: 3 }))
  const counts = { files: 1, read: 1, records: {}, explained: [] }
  return { agent: "codex", title: "Codex", version: "0.169.0", ...counts, differences }
}

test.each(HOSTILE)("the name %j is code in an issue, and nothing else", (name) => {
  const { title, body } = issueOf({ ...reportOf(name), title: name, version: name }, name)
  for (const text of [title, body]) {
    expect(text).not.toMatch(/[@$<>#[\]!&|\\\u0000-\u0009\u000B-\u001F\u202E]/)
    expect(text.split("`").length % 2).toBe(1)
  }
  expect(title.split("\n")).toHaveLength(1)
  expect(body.split("\n").filter((line) => line.startsWith("- "))).toEqual([`- unknown record: \`${plain(name)}\` (3)`])
  expect(micromark(body)).not.toMatch(/<(?!\/?(?:p|ul|li|code)>)/)
})

test("a name keeps its letters, and is cut", () => {
  expect(plain("event_msg/item.completed: 1-2")).toBe("event_msg/item.completed: 1-2")
  expect(plain("a@b")).toBe("a(u40)b")
  expect(plain("x".repeat(1000))).toBe(`${"x".repeat(120)}...`)
})

test("an issue lists the first 50 differences, and counts the others", () => {
  const { body } = issueOf(reportOf(...Array.from({ length: 60 }, (_, i) => `kind_${i}`)), "2026-11-19")
  expect(body.match(/^- /gm)).toHaveLength(51)
  expect(body).toContain("- and 10 more")
})

test("opens an issue for each agent with a difference, and replaces the text of one that is open", () => {
  const dir = tempDir()
  const bin = join(dir, "bin")
  mkdirSync(bin)
  const log = join(dir, "calls.jsonl")
  writeFileSync(
    join(bin, "gh"),
    `#!${process.execPath}
const { appendFileSync, readFileSync } = require("node:fs")
const args = process.argv.slice(2)
appendFileSync(${JSON.stringify(log)}, JSON.stringify({ args, input: readFileSync(0, "utf8") }) + "\\n")
if (args[1] === "list") console.log('[{"number":7,"title":"Canary: Codex"}]')
`,
  )
  chmodSync(join(bin, "gh"), 0o755)
  const report = join(dir, "canary.json")
  const same = { ...reportOf(), title: "Pi" }
  const agents = [reportOf("$(touch evil)"), { ...reportOf("new_kind"), agent: "grok", title: "Grok" }, same]
  writeFileSync(report, JSON.stringify({ date: "2026-11-19", agents, not_run: [] }))
  execFileSync(process.execPath, [join(import.meta.dirname, "../../e2e/canary/issues.ts"), report], {
    cwd: dir,
    env: { PATH: `${bin}${delimiter}${process.env.PATH}` },
  })
  const calls = readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { args: string[]; input: string })
  expect(calls.map(({ args }) => args.slice(0, 4).join(" "))).toEqual([
    "label create canary --description",
    "issue list --label canary",
    "issue edit 7 --body-file",
    "issue create --title Canary: Grok",
  ])
  expect(calls[2]!.input).toContain("- unknown record: `(u24)(u28)touch evil(u29)` (3)\n")
  expect(calls[3]!.input).toContain("- unknown record: `new_kind` (3)\n")
})
