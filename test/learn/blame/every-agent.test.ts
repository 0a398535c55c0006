import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { agents } from "../../../src/agents/registry.ts"
import { homeOf } from "../../agents/contract.ts"
import { moveProject } from "../../support/fixture-project.ts"
import { makeRepository } from "../../support/repository.ts"
import { tempDir } from "../../support/temp.ts"
import { syncHome, warmDex } from "../../support/warm.ts"

const WOMBAT = "export let wombats = 1 // the first wombat"

/** A fixture of each agent in which a line was written, and its file. */
const WROTE: Record<string, { fixture: string; file: string; line: string }> = {
  amp: { fixture: "0.0.17-threads", file: "src/kick.ts", line: "export const kicks = 1 // once is enough" },
  antigravity: { fixture: "agy-1.1-tools", file: "src/song.ts", line: "export const songs = all().sort()" },
  codebuff: { fixture: "1.0-blocks", file: "src/tax.ts", line: "const rate = 19 // percent of the net" },
  cline: { fixture: "3.0.65-edits-commit", file: "src/wombat.js", line: WOMBAT },
  continue: { fixture: "1.5.47-edits-resumed", file: "src/wombat.js", line: WOMBAT },
  copilot: { fixture: "1.0.102-edits-commit", file: "src/wombat.js", line: WOMBAT },
  crush: { fixture: "0.2-tools-agent", file: "tax.go", line: "const rate, reduced = 19, 7" },
  droid: {
    fixture: "0.81-store-branch-subagent",
    file: "tax.ts",
    line: 'export const tax = kind === "book" ? 7 : 19',
  },
  forge: { fixture: "2026-tools-image", file: "src/tax.ts", line: "const rate = 19" },
  goose: {
    fixture: "1.35-tools-compaction-subagent",
    file: "rates.ts",
    line: "export const rates = { books: 0.07, wine: 0.19 }",
  },
  gptme: { fixture: "0.35.1-recorded", file: "tax.js", line: "const rate = 19" },
  grok: { fixture: "1.0.41-edits-commit", file: "src/wombat.js", line: WOMBAT },
  hermes: { fixture: "database", file: "src/feed.ts", line: "export const feed = load().sort()" },
  junie: { fixture: "3110-blocks-usage", file: "src/tax.ts", line: "const rate = 19 // since July" },
  kimi_code: { fixture: "2.1.0-edits-commit", file: "src/wombat.js", line: WOMBAT },
  kiro: { fixture: "cli-database", file: "src/dunnart.ts", line: "export const dunnarts = () => load()" },
  mistral_vibe: {
    fixture: "2.18-tools-subagent",
    file: "src/numbat.ts",
    line: "export const numbats = [2, 1].sort()",
  },
  openclaw: { fixture: "2026.2-tools", file: "src/wombat.ts", line: "let wombats = 1 // the first wombat" },
  openhands: { fixture: "1.x-tools", file: "src/quoll.ts", line: "  spots: number // as many as were counted" },
  qwen_code: { fixture: "0.24.4-edits-commit", file: "src/wombat.js", line: WOMBAT },
  roo_code: {
    fixture: "3.52-native-tools-subtask",
    file: "src/tax.ts",
    line: "export const rate = books ? 0.07 : 0.19",
  },
  vscode: { fixture: "1.109-operation-log", file: "total.ts", line: "export const total = Math.ceil(net + tax)" },
  warp: { fixture: "2026-tasks-subagent", file: "src/tax.ts", line: "const rate = 0.19 // of the net" },
  zed: {
    fixture: "0.3.0-tools-subagent",
    file: "src/server.ts",
    line: "export const port = Number(env.PORT ?? 8080)",
  },
}

/** Why an agent is not in the table. */
const TESTED_ELSEWHERE = ["claude_code", "codex", "opencode", "cursor", "gemini_cli", "pi"]
const KEPT_IN_PROJECTS = ["aider"]
const RECORDS_NO_EDITS = ["auggie", "dex_chat", "dex_note", "llm"]
const RECORDS_NO_FOLDER = ["visual_studio_copilot"]
/** The project of a compressed session cannot be moved here. */
const COMPRESSED = ["deepseek_harness"]
const ELSEWHERE = [...TESTED_ELSEWHERE, ...KEPT_IN_PROJECTS, ...RECORDS_NO_EDITS, ...RECORDS_NO_FOLDER, ...COMPRESSED]

test("the table contains every agent, except those that use another agent's format", () => {
  const own = agents.filter(
    ({ connector, variantOf, isExported }) => connector && variantOf === undefined && !isExported,
  )
  const missing = own.map(({ source }) => source).filter((source) => !WROTE[source] && !ELSEWHERE.includes(source))
  expect(missing).toEqual([])
})

test("in one home with all agents, each line is attributed to its own agent", async () => {
  const home = tempDir()
  const repository = join(home, "proj")
  const { git, gitAt } = makeRepository(repository)
  for (const [source, { fixture, file, line }] of Object.entries(WROTE)) {
    const own = await homeOf(join("test/fixtures", source, fixture))
    moveProject(own, join(repository, source))
    cpSync(own, home, { recursive: true })
    mkdirSync(dirname(join(repository, source, file)), { recursive: true })
    writeFileSync(join(repository, source, file), `${line}\n`)
  }
  git("add", ".")
  gitAt("2026-11-16T12:00:00Z", "commit", "-q", "-m", "All of it")
  await syncHome(home)
  const found: Record<string, string> = {}
  for (const [source, { file }] of Object.entries(WROTE)) {
    const { stdout } = await warmDex(home, ["blame", `${source}/${file}`, "--json"], {}, repository)
    found[source] = (JSON.parse(stdout) as { lines: { agent?: string }[] }).lines[0]?.agent ?? "nobody"
  }
  const names = agents.filter(({ source }) => WROTE[source]).map(({ source, name }) => [source, name])
  expect(found).toEqual(Object.fromEntries(names))
})
