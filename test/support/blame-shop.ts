import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect } from "vitest"
import { call, putSession, writer } from "./claude-code.ts"
import { makeRepository, type Repository } from "./repository.ts"
import { tempDir } from "./temp.ts"
import { warmDex } from "./warm.ts"

export const ONE = "11111111-2222-4333-8444-555555555555"
export const TWO = "22222222-2222-4333-8444-555555555555"
export const refTo = (id: string) => `claude_code:${id}`

/** Code that a conversation wrote, with several lines, because a single line could be anybody's. */
export const codeOf = (name: string, count = 12) =>
  Array.from({ length: count }, (_, i) => `\tconst ${name}${i} = compute("${name}", ${i * 7}, options.${name}${i})`)

export const FIRST = codeOf("quokka")
export const SECOND = codeOf("wombat")
export const OWN = codeOf("mine", 4)

export type BlamedLine = {
  line: number
  text: string
  commit: string
  level: string
  conversation?: string
  recorded?: string
}
export type Answer = {
  kind: string
  lines: BlamedLine[]
  commits: Commit[]
  agents: Counts[]
  notes: string[]
} & Counts
export type Counts = { agent: string; total: number; proved: number; likely: number; unknown: number }
export type Commit = {
  commit: string
  subject: string
  level: string
  conversation?: string
  recorded?: string
} & Counts

/** A session that writes lines into a file, `minutes` after ten o'clock. */
export function session(
  home: string,
  project: string,
  id: string,
  prompt: string,
  file: string,
  lines: string[],
  hour = 10,
  committed?: { hash: string; subject: string },
): void {
  const told = writer({ sessionId: id, cwd: project }, id.slice(0, 3))
  told.prompt(prompt)
  const filePath = join(project, file)
  told.answer("m_1", [call("e1", "Write", { file_path: filePath, content: lines.join("\n") })])
  told.result("e1", "File created", {
    toolUseResult: {
      type: "create",
      filePath,
      structuredPatch: [
        { oldStart: 1, oldLines: 0, newStart: 1, newLines: lines.length, lines: lines.map((line) => `+${line}`) },
      ],
    },
  })
  if (committed) {
    told.answer("m_2", [call("c1", "Bash", { command: `git commit -qam '${committed.subject}'; git log -1` })])
    told.result("c1", `[main ${committed.hash.slice(0, 7)}] ${committed.subject}\n 1 file changed`)
  }
  const moved = told.records.map((record) => ({
    ...record,
    timestamp: String(record.timestamp).replace("T10:", `T${String(hour).padStart(2, "0")}:`),
  }))
  putSession(home, moved, id)
}

export function put(repository: Repository, file: string, lines: string[]): void {
  mkdirSync(dirname(join(repository.folder, file)), { recursive: true })
  writeFileSync(join(repository.folder, file), `${lines.join("\n")}\n`)
}

export function commit(repository: Repository, at: string, message: string): string {
  repository.git("add", "-A")
  repository.gitAt(`2026-01-02T${at}:00Z`, "commit", "-q", "--allow-empty", "-m", message)
  return repository.git("rev-parse", "HEAD")
}

/**
 * Creates a home with a project in which one conversation wrote a part of a file, a second one another part, and the person the
 * rest.
 */
export async function shop(): Promise<{
  home: string
  repository: Repository
  ask: (...args: string[]) => Promise<Answer>
}> {
  const home = tempDir()
  const repository = makeRepository(join(home, "shop"))
  await fill(home, repository)
  return { home, repository, ask: createAsk(home, repository) }
}

export async function fill(home: string, repository: Repository): Promise<void> {
  put(repository, "README.md", ["# Shop"])
  commit(repository, "09:00", "start")
  session(home, repository.folder, ONE, "Add the quokka table", "src/zoo.ts", FIRST, 10)
  put(repository, "src/zoo.ts", FIRST)
  commit(repository, "10:05", "zoo: quokkas")
  session(home, repository.folder, TWO, "Now the wombats", "src/zoo.ts", SECOND, 12)
  put(repository, "src/zoo.ts", [...FIRST, ...SECOND])
  commit(repository, "12:05", "zoo: wombats")
  put(repository, "src/zoo.ts", [...OWN, ...FIRST, ...SECOND])
  repository.git("add", "-A")
  repository.gitAt("2026-01-20T12:00:00Z", "commit", "-q", "-m", "by hand")
  expect(await warmDex(home, ["sync"])).toMatchObject({ code: 0 })
}

export const createAsk =
  (home: string, { folder }: Repository) =>
  async (...args: string[]): Promise<Answer> => {
    const { stdout, stderr } = await warmDex(home, ["blame", ...args, "--json"], {}, folder)
    if (stdout === "") throw new Error(stderr)
    return JSON.parse(stdout) as Answer
  }

export const conversationsOfLines = ({ lines }: Answer) => lines.map(({ conversation }) => conversation ?? "")
export const EXPECTED = [...OWN.map(() => ""), ...FIRST.map(() => refTo(ONE)), ...SECOND.map(() => refTo(TWO))]
