import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { openTest, run, type TestDatabase } from "./postgres.ts"
import { postgresPrograms } from "./start-postgres.ts"

// Backups as docs/hub.md describes them: with pg_dump, and the keys separate from everything else.

export const WITHOUT_KEYS = ["--exclude-schema=hub_key"]
export const KEYS = ["--schema=hub_key"]

export function dump(database: string, args: string[], file: string): void {
  execFileSync(join(postgresPrograms()!, "pg_dump"), [...args, "-f", file, database], { stdio: "ignore" })
}

/** Restores these dumps into a new database. */
export async function restored(from: TestDatabase, files: string[]) {
  const name = `restored_${randomBytes(6).toString("hex")}`
  await run(from.owner, `create database ${name}`)
  onTestFinished(async () => void (await run(from.owner, `drop database ${name} with (force)`)))
  const inIt = (address: string) => address.replace(/\/hub_[0-9a-f]+\?/, `/${name}?`)
  const [owner, app, index, keys] = [from.owner, from.app, from.index, from.keys].map(inIt) as [
    ...[string, string, string, string],
  ]
  for (const file of files)
    execFileSync(join(postgresPrograms()!, "psql"), ["-q", "-v", "ON_ERROR_STOP=1", "-f", file, owner], {
      stdio: "ignore",
    })
  const database: TestDatabase = { ...from, owner, app, index, keys }
  return { ...database, db: openTest(database) }
}
