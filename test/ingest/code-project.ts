import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { onTestFinished } from "vitest"
import { syncProjectCode } from "../../src/ingest/project-code.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { tempDir } from "../support/temp.ts"

export type Files = Record<string, string | Buffer>

export function write(folder: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/** A project with these files, and an empty knowledge file. */
export function openProject(files: Files) {
  const project = join(tempDir(), "project")
  write(project, files)
  const knowledge = openKnowledge(join(tempDir(), "knowledge.db"))
  onTestFinished(() => void knowledge.close())
  const at = { knowledge, project }
  const names = (path: string) => knowledge.symbols.definitionsIn(project, path).map(({ name }) => name)
  const users = (name: string) =>
    knowledge.symbols
      .definitionsNamed(project, name, 1)
      .flatMap((symbol) =>
        knowledge.symbols
          .usesOf(project, symbol, 50)
          .map(
            ({ path, line, container, kind, resolution }) => `${path}:${line} ${container ?? ""} ${kind} ${resolution}`,
          ),
      )
  return { at, knowledge, project, names, users, sync: () => syncProjectCode(at) }
}
