import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { zstdDecompressSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { filePath } from "../../src/trace/files.ts"
import { random } from "../redact/secrets.ts"
import { dex, PATIENT } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

// A secret can also be a name: of a file, a branch, a function, or a path in an old commit.

const WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const token = (seed: number) => `${"gh"}p_${random(seed).of(WORD, 36)}`
const IN = {
  file: token(1),
  branch: token(2),
  identifier: token(3),
  renamed: token(4),
  module: token(5),
  report: token(6),
  document: token(7),
  recent: token(8),
}

let home: string
let project: string
beforeAll(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "dex-names-")))
  project = join(home, "code", "api")
  makeProject()
  const turns = [...Array(3)].flatMap((_, i) => [
    { user: `Change the store, part ${i}` },
    edit(join(project, `src/${IN.file}.ts`)),
    edit(join(project, "src/main.ts")),
  ])
  for (const n of [1, 2, 3]) {
    const id = `${n}1111111-2222-4333-8444-555555555555`
    claudeSession(home, { id, cwd: project, start: `2026-10-0${n}T10:00:00Z`, turns })
  }
  for (const args of [
    ["sync"],
    ["docs", "add", join(project, "docs"), "--name", "notes"],
    ["suggest", "--file", `src/${IN.file}.ts`],
    ["suggest", "--file", "src/main.ts", "--recent", `src/${IN.recent}.ts`],
    ["suggest", "--file", "src/main.ts", "--symbol", IN.identifier],
    ["suggest"],
    ["tests"],
    ["search", `store file:src/${IN.file}.ts`],
    ["sync"],
  ]) {
    const { code, stderr } = await warmDex(home, args, {}, project)
    expect([0, 1], `${args.join(" ")}: ${stderr}`).toContain(code)
  }
  for (const event of ["PreToolUse", "SessionStart", "PostToolUseFailure"]) await hook(event)
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

describe("a secret that is a name", () => {
  test("is in no file of dex", () => {
    const kept = heldIn(join(home, ".dex"))
    expect(kept.map(({ where }) => where)).toEqual(expect.arrayContaining([KNOWLEDGE_FILE, "suggest.db", "history.db"]))
    const leaks = Object.entries(IN).flatMap(([what, secret]) =>
      kept
        .filter(({ text }) => text.toLowerCase().includes(secret.slice(4, 30).toLowerCase()))
        .map(({ where }) => `${what} in ${where}`),
    )
    expect([...new Set(leaks)]).toEqual([])
  })

  test("is shown redacted, and the file's knowledge is found by its real name", async () => {
    const args = ["suggest", "--file", `src/${IN.file}.ts`, "--json"]
    const { stdout } = await warmDex(home, args, {}, project)
    const { suggestions } = JSON.parse(stdout) as { suggestions: { kind: string; title: string; file?: string }[] }
    expect(suggestions.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(["conversation", "change", "related_code"]),
    )
    expect(suggestions.map(({ file }) => file)).toContain("src/main.ts")
    expect(suggestions.map(({ title }) => title).join("\n")).toContain("[REDACTED:github-token].ts was last edited")
    expect(stdout).not.toContain(IN.file.slice(4, 20))
  })

  test("is stored in the moment as it is shown", () => {
    const db = openSqlite(join(home, ".dex", "suggest.db"), { readonly: true })
    const moments = db.prepare("select moment from suggestion").pluck().all() as string[]
    db.close()
    expect(moments.join("\n")).toContain("src/[REDACTED:github-token].ts")
    expect(moments.join("\n")).toContain("fix/[REDACTED:github-token]")
  })

  test("does not cause unchanged code to be read again", async () => {
    const read = () => {
      const db = openSqlite(join(home, ".dex", KNOWLEDGE_FILE), { readonly: true })
      const rows = db.prepare("select id, path from code_file order by path").all()
      db.close()
      return rows
    }
    const before = read()
    expect(before.length).toBeGreaterThan(2)
    await warmDex(home, ["suggest"], {}, project)
    expect(read()).toEqual(before)
  })
})

test("--redact-again removes names that an older version stored, from every file", async () => {
  const old = tempDir()
  smallHome(old)
  expect(await warmDex(old, ["sync"])).toMatchObject({ code: 0 })
  const folder = join(old, ".dex")
  keepUnredacted(folder)
  const leaks = () =>
    heldIn(folder).filter(({ text }) => text.includes(IN.file.slice(4, 30)) || text.includes(IN.branch.slice(4, 30)))
  expect(new Set(leaks().map(({ where }) => where.split(/[ .]/)[0]))).toEqual(
    new Set([KNOWLEDGE_FILE.replace(".db", ""), "suggest", "000001", "answer"]),
  )
  expect(await warmDex(old, ["sync", "--redact-again"])).toMatchObject({ code: 0 })
  expect(leaks().map(({ where }) => where)).toEqual([])
  const suggestions = openSuggestions(join(folder, "suggest.db"))
  expect(suggestions.list({ limit: 9 })).toMatchObject([
    { moment: { branch: "fix/[REDACTED:github-token]" }, items: [{ title: "[REDACTED:github-token].ts was changed" }] },
  ])
  suggestions.close()
})

/** As version 0.1.0 did it. */
function keepUnredacted(folder: string): void {
  const path = `src/${IN.file}.ts`
  const knowledge = openKnowledge(join(folder, KNOWLEDGE_FILE))
  const commit = { hash: "a".repeat(40), at: 1, committed_at: 1, subject: "s", body: "", file_count: 1 }
  knowledge.git.saveCommits({
    ...{
      project: "/code/api",
      head: "a".repeat(40),
      shallow: "",
      read_at: 1,
      replaces: true,
      left_out: [],
      max_commits: 9,
    },
    commits: [{ ...commit, files: [{ status: "added", path }] }],
    when_more: "",
  })
  const stamp = { size: 1, modified_at: 1, version: 1 }
  knowledge.code.saveCode("/code/api", [
    { ...stamp, path, language: "typescript", lines: 1, definitions: [], imports: [], uses: [] },
  ])
  knowledge.close()
  const suggestions = openSuggestions(join(folder, "suggest.db"))
  const moment = {
    event: "asked",
    project: "/code/api",
    branch: `fix/${IN.branch}`,
    file: path,
    at: Date.now(),
  } as const
  const about = { title: `${IN.file}.ts was changed`, summary: "", reason: "", file: path, features: {} }
  const item = { kind: "change", key: `file:${path}`, ...about, relevance: 1, estimated_tokens: 9 } as const
  suggestions.save({ id: "old", moment, items: [item], status: "shown", latency_ms: 1 })
  suggestions.close()
  mkdirSync(join(folder, "traces"), { recursive: true })
  writeFileSync(filePath(join(folder, "traces"), 1), `${JSON.stringify({ args: { file: path } })}\n`)
  mkdirSync(join(folder, "map"), { recursive: true })
  writeFileSync(join(folder, "map", "answer.json"), JSON.stringify({ refs: [], value: { file: path } }))
}

function makeProject(): void {
  const { git, gitAt } = makeRepository(project)
  put(`src/${IN.file}.ts`, `export function open() {}\n`)
  put(
    "src/main.ts",
    `import { open } from "./${IN.file}.ts"\nimport { x } from "@scope/${IN.module}"\nexport function ${IN.identifier}() { open(); x() }\n`,
  )
  put(`old/${IN.renamed}.ts`, "export const a = 1\nexport const b = 2\nexport const c = 3\n")
  put(`docs/${IN.document}.md`, `# ${IN.document}\n\nHow the store is opened.\n`)
  put(
    `test-results/${IN.report}.xml`,
    `<testsuite name="s"><testcase name="opens ${IN.report}" file="src/${IN.file}.test.ts"><failure message="no"/></testcase></testsuite>`,
  )
  for (const [n, message] of ["one", "two", "three"].entries()) {
    put("src/main.ts", `${readFileSync(join(project, "src/main.ts"), "utf8")}// ${message}\n`)
    put(`src/${IN.file}.ts`, `${readFileSync(join(project, `src/${IN.file}.ts`), "utf8")}// ${message}\n`)
    git("add", ".")
    gitAt(new Date(Date.now() - (9 - n) * 3_600_000).toISOString(), "commit", "-qm", `store: part ${message}`)
  }
  git("mv", `old/${IN.renamed}.ts`, "src/renamed.ts")
  gitAt(new Date(Date.now() - 3_600_000).toISOString(), "commit", "-qm", "move it")
  git("checkout", "-qb", `fix/${IN.branch}`)
}

function put(path: string, text: string): void {
  mkdirSync(dirname(join(project, path)), { recursive: true })
  writeFileSync(join(project, path), text)
}

function edit(file: string) {
  return {
    tool: {
      name: "Edit",
      input: { file_path: file, old_string: "a", new_string: "b" },
      output: "The file was updated.",
    },
  }
}

async function hook(event: string): Promise<void> {
  const input = {
    session_id: `hook ${event}`,
    cwd: project,
    hook_event_name: event,
    tool_name: event === "PreToolUse" ? "Edit" : "Bash",
    tool_input: { file_path: join(project, `src/${IN.file}.ts`), command: `cat src/${IN.file}.ts` },
    error: `Exit code 1\nError: cannot open src/${IN.file}.ts`,
  }
  await dex(
    home,
    ["hook", "claude_code", event],
    { ...PATIENT, DEX_PROACTIVE_MODE: "speak" },
    undefined,
    JSON.stringify(input),
    project,
  )
}

/** Every byte of every file, every cell, and the content of compressed cells. The file that a unit was read from is excluded. */
function heldIn(folder: string): { where: string; text: string }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const file = join(entry.parentPath, entry.name)
      const bytes = readFileSync(file)
      if (!bytes.subarray(0, 15).equals(Buffer.from("SQLite format 3")))
        return [{ where: entry.name, text: `${entry.name}\n${bytes.toString("latin1")}` }]
      const db = openSqlite(file, { readonly: true })
      const tables = db.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[]
      const cells = tables.flatMap((table) =>
        rowsOf(db, table).flatMap((row) =>
          Object.entries(row).map(([column, value]) => ({
            where: `${entry.name} ${table}.${column}`,
            text: textOf(value),
          })),
        ),
      )
      db.close()
      const isHistory = entry.name.startsWith("history.db")
      const whole = { where: entry.name, text: isHistory ? "" : bytes.toString("latin1") }
      return [whole, ...cells.filter(({ where }) => !/^history\.db unit\.(?:path|key)$/.test(where))]
    })
}

function rowsOf(db: ReturnType<typeof openSqlite>, table: string): Record<string, unknown>[] {
  try {
    return db.prepare(`select * from "${table}"`).all() as Record<string, unknown>[]
  } catch {
    return [] // an internal table of the full text index
  }
}

function textOf(value: unknown): string {
  if (!(value instanceof Uint8Array)) return String(value)
  try {
    return zstdDecompressSync(value).toString("utf8")
  } catch {
    return Buffer.from(value).toString("latin1")
  }
}
