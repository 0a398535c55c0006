import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import Database from "better-sqlite3"
import { homeOf } from "../agents/contract.ts"
import { makeRepository } from "./repository.ts"
import { syncHome, warmDex } from "./warm.ts"

/** The folder in which the sessions of fixtures took place. */
const PROJECT = "/home/dev/proj"

/**
 * A home with a fixture that dex has read. Its project is a real repository in which `files` were committed after the sessions.
 * Also returns a function that runs a command in that repository and returns its JSON.
 */
export async function fixtureProject(fixture: string, files: Record<string, string>) {
  const home = await homeOf(fixture)
  const project = join(home, "proj")
  moveProject(home, project)
  const { git, gitAt } = makeRepository(project)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true })
    writeFileSync(join(project, name), text)
  }
  git("add", ".")
  gitAt("2026-11-16T12:00:00Z", "commit", "-q", "--allow-empty", "-m", "All of it")
  await syncHome(home)
  return async (...args: string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await warmDex(home, [...args, "--json"], {}, project)
    if (code !== 0) throw new Error(`dex ${args.join(" ")}: ${stderr}`)
    return JSON.parse(stdout)
  }
}

/** Moves the project of a fixture's sessions, wherever they name it. */
export function moveProject(home: string, to: string): void {
  for (const entry of readdirSync(home, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile()) continue
    if (/\.(db|sqlite3?)$/.test(path)) moveInDatabase(path, to)
    else writeFileSync(path, readFileSync(path, "utf8").replaceAll(PROJECT, to))
  }
}

function moveInDatabase(path: string, to: string): void {
  const db = new Database(path)
  const tables = db.prepare("select name from sqlite_master where type = 'table'").pluck().all() as string[]
  for (const table of tables)
    for (const { name } of db.pragma(`table_info("${table}")`) as { name: string }[])
      db.prepare(`update "${table}" set "${name}" = replace("${name}", ?, ?) where typeof("${name}") = 'text'`).run(
        PROJECT,
        to,
      )
  db.close()
}
