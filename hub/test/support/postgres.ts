import { randomBytes } from "node:crypto"
import { onTestFinished } from "vitest"
import { type Database, openDatabase } from "../../src/store/connection.ts"
import { migrate } from "../../src/store/migrate.ts"
import { postgresPrograms, runAs as run, type StartedPostgres, startPostgres } from "./start-postgres.ts"

export { runAs as run } from "./start-postgres.ts"

// A real PostgreSQL: the one that DEX_TEST_DATABASE_URL names, or one that this process starts and stops.

export type TestDatabase = {
  owner: string
  app: string
  index: string
  keys: string
  admin: string
  masterKey: Buffer
  /** The folder of the server's files, if it is ours. */
  files?: string
}

let started: Promise<StartedPostgres> | undefined
let template: Promise<string> | undefined

/** Without PostgreSQL, the tests are skipped with a warning. */
export const hasPostgres = process.env.DEX_TEST_DATABASE_URL !== undefined || postgresPrograms() !== undefined
if (!hasPostgres)
  console.warn("No PostgreSQL: install postgresql or set DEX_TEST_DATABASE_URL, or the hub is not tested.")

/** A new database with the hub's tables. */
export async function newDatabase({ migrated = true } = {}): Promise<TestDatabase> {
  const { url, files } = await testServer()
  const name = `hub_${randomBytes(6).toString("hex")}`
  // A server of our own has a database with the tables, to copy: making the tables takes three times as long.
  if (migrated && files !== undefined) template ??= newTemplate(url)
  const copied = migrated && files !== undefined ? ` template ${await template}` : ""
  await run(url("postgres", "postgres"), `create database ${name}${copied}`)
  onTestFinished(async () => void (await run(url("postgres", "postgres"), `drop database ${name} with (force)`)))
  if (migrated && copied === "") await migrate({ owner: url("postgres", name) })
  return { ...addressesOf(url, name), masterKey: randomBytes(32), ...(files !== undefined && { files }) }
}

export function testServer(): Promise<StartedPostgres> {
  started ??= process.env.DEX_TEST_DATABASE_URL === undefined ? startPostgres() : namedServer()
  return started
}

/** The addresses of a database for the owner of its tables and for the hub's roles. */
export function addressesOf(url: StartedPostgres["url"], name: string) {
  return {
    owner: url("postgres", name),
    app: url("dex_hub_app", name),
    index: url("dex_hub_index", name),
    keys: url("dex_hub_keys", name),
    admin: url("dex_hub_admin", name),
  }
}

async function newTemplate(url: StartedPostgres["url"]): Promise<string> {
  const name = "hub_template"
  await run(url("postgres", "postgres"), `create database ${name}`)
  await migrate({ owner: url("postgres", name) })
  return name
}

export function openTest(database: TestDatabase): Database {
  const db = openDatabase({ ...database, connections: 4 })
  onTestFinished(() => db.close())
  return db
}

async function namedServer(): Promise<StartedPostgres> {
  const named = new URL(process.env.DEX_TEST_DATABASE_URL!)
  const url = (role: string, database: string) => {
    const address = new URL(named)
    if (role !== "postgres") Object.assign(address, { username: role, password: "test" })
    address.pathname = `/${database}`
    return address.href
  }
  return { url }
}
