import { cpSync, existsSync, mkdirSync, readdirSync, renameSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { call, putSession, type Writer, writer } from "../support/claude-code.ts"
import { claudeSession } from "../support/home.ts"

const FIXTURES = join(import.meta.dirname, "..", "fixtures")
const AGENTS = ["claude_code", "codex", "opencode", "cursor", "gemini_cli", "pi"]
/** Fixtures whose databases have the same names as those of other fixtures. */
const LEFT_OUT = ["1.18-traps", "2.0-fresh", "2.0-upgraded", "0.4x-editor-old"]

const ERROR = "TypeError: quokkaword is not a function"
const MANY = 400

/**
 * Creates homes for the checks. `agents` has the fixtures of all agents in their folders on Windows, and `agents-here` in those
 * on Linux. In `solved` an error was solved. `many` has so many conversations that a sync can be killed in the middle.
 */
export async function makeHomes(folder: string): Promise<void> {
  const [here, there] = [join(folder, "agents-here"), join(folder, "agents")]
  mkdirSync(here)
  for (const agent of AGENTS)
    for (const name of readdirSync(join(FIXTURES, agent)).sort())
      if (!LEFT_OUT.includes(name)) await add(join(FIXTURES, agent, name), here)
  cpSync(here, there, { recursive: true })
  const roaming = join(there, "AppData", "Roaming")
  mkdirSync(roaming, { recursive: true })
  for (const name of ["Cursor", "Claude"]) renameSync(join(there, ".config", name), join(roaming, name))

  const solved = join(folder, "solved")
  putSession(solved, solvingSession())
  const many = join(folder, "many")
  for (let i = 0; i < MANY; i++)
    claudeSession(many, {
      id: `${String(i).padStart(8, "0")}-1111-4111-8111-111111111111`,
      start: "2026-11-03T10:00:00Z",
      turns: Array.from({ length: 10 }, (_, n) => ({
        user: `question ${n} of ${i}`,
        assistant: `answer ${n}`.repeat(50),
      })),
    })
}

async function add(fixture: string, home: string): Promise<void> {
  const maker = join(fixture, "make.ts")
  if (!existsSync(maker)) return cpSync(join(fixture, "home"), home, { recursive: true })
  const { make } = (await import(pathToFileURL(maker).href)) as { make: (home: string) => void | Promise<void> }
  await make(home)
}

function solvingSession(): unknown[] {
  const session = writer()
  session.prompt("Make the tests pass")
  run(session, "c1", ERROR, true)
  const filePath = "/home/dev/proj/src/token.ts"
  session.answer("m_e", [call("e1", "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const structuredPatch = [
    { oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-quokka()", "+quokka.run()"] },
  ]
  session.result("e1", "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
  run(session, "c2", "12 passed", false)
  return session.records
}

function run(session: Writer, id: string, output: string, isError: boolean): void {
  session.answer(`m_${id}`, [call(id, "Bash", { command: "npm test" })])
  const told = isError ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
  session.result(id, output, { toolUseResult: told }, { is_error: isError })
}
