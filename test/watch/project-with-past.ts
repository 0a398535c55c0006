import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const FILES = ["src/token.ts", "src/session.ts"]

/** A project in which two files were edited together, four times. */
export function projectWithPast() {
  const home = tempDir()
  const project = join(home, "api")
  mkdirSync(join(project, "src"), { recursive: true })
  const edit = (path: string) => ({
    tool: { name: "Edit", input: { file_path: join(project, path), old_string: "1", new_string: "2" }, output: "ok" },
  })
  for (let i = 1; i <= 4; i++)
    claudeSession(home, {
      id: `${String(i).repeat(8)}-1111-4111-8111-111111111111`,
      cwd: project,
      start: `2026-11-0${i}T10:00:00Z`,
      turns: [{ user: "Let tokens live for an hour" }, ...FILES.map(edit)],
    })
  const run = (args: string[]) => warmDex(home, args, {}, project)
  return { home, project, edit, run }
}
