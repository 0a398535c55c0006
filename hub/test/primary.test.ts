import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { databaseUnavailable, openDatabase } from "../src/store/connection.ts"
import { openClient, singleAddresses } from "../src/store/primary.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { backUpPostgres, type StartedPostgres, startPostgres } from "./support/start-postgres.ts"

test.each([
  ["postgresql://hub@db/hub", ["postgresql://hub@db/hub"]],
  [
    "postgresql://hub:a%2Cb@db1,db2:5433/hub?sslmode=require",
    ["postgresql://hub:a%2Cb@db1/hub?sslmode=require", "postgresql://hub:a%2Cb@db2:5433/hub?sslmode=require"],
  ],
  ["postgresql://[::1]:1,[::2]:2/hub", ["postgresql://[::1]:1/hub", "postgresql://[::2]:2/hub"]],
  [
    "postgresql://hub@/hub?host=/run/a,/run/b&port=1,2",
    ["postgresql://hub@/hub?host=%2Frun%2Fa&port=1", "postgresql://hub@/hub?host=%2Frun%2Fb&port=2"],
  ],
  [
    "postgresql://hub@/hub?host=/a,/b&port=7",
    ["postgresql://hub@/hub?host=%2Fa&port=7", "postgresql://hub@/hub?host=%2Fb&port=7"],
  ],
  ["postgresql://hub@/hub?host=%2Frun%2Fa", ["postgresql://hub@/hub?host=%2Frun%2Fa"]],
])("%s names %j", (address, expected) => {
  expect(singleAddresses(address)).toEqual(expected)
})

describe.skipIf(!hasPostgres || process.env.DEX_TEST_DATABASE_URL !== undefined)(
  "servers that replace each other",
  () => {
    /** An address of several servers, as a user would write it. */
    const addressOf = (...servers: StartedPostgres[]) => {
      const folders = servers.map(({ url }) =>
        new URL(url("postgres", "postgres").replace("@/", "@localhost/")).searchParams.get("host"),
      )
      return `postgresql://postgres@/postgres?host=${encodeURIComponent(folders.join(","))}`
    }
    const open = (address: string) => {
      const db = openDatabase({ app: address, index: address, masterKey: randomBytes(32), connections: 2 })
      onTestFinished(() => db.close())
      const write = () =>
        db.asNobody({}, (query) => query("insert into log values (inet_server_port()) returning 1 as done"))
      return { db, write }
    }
    const kill = ({ files }: StartedPostgres) => {
      const pid = Number(readFileSync(join(files!, "postmaster.pid"), "utf8").split("\n")[0])
      process.kill(pid, "SIGQUIT")
    }
    const systemOf = async (address: string) => {
      const client = await openClient(address, {})
      onTestFinished(() => client.end())
      return (await client.query("select current_setting('data_directory') as files")).rows[0].files
    }
    async function twoServers() {
      const first = await startPostgres()
      const owner = first.url("postgres", "postgres")
      await run(owner, "create table log (port int)")
      const second = await backUpPostgres(first.url, { isStandby: true })()
      return { first, second, promote: () => run(second.url("postgres", "postgres"), "select pg_promote()") }
    }

    test("writes go to the one that is not a standby, wherever it stands in the address", async () => {
      const { first, second } = await twoServers()
      for (const address of [addressOf(first, second), addressOf(second, first)])
        expect(await systemOf(address)).toBe(first.files)
      await expect(run(second.url("postgres", "postgres"), "insert into log values (1)")).rejects.toThrow(/read-only/)
      const { write } = open(addressOf(second, first))
      expect(await write()).toEqual([{ done: 1 }])
    })

    test("of two that take writes, the one that was promoted last is used", async () => {
      const { first, second, promote } = await twoServers()
      await promote()
      for (const address of [addressOf(first, second), addressOf(second, first)])
        expect(await systemOf(address)).toBe(second.files)
    })

    test("a hub goes on with the promoted one: what fails meanwhile is 503 with the seconds to wait", async () => {
      const { first, second, promote } = await twoServers()
      const { write } = open(addressOf(first, second))
      await write()
      await kill(first)
      const failed = await write().catch((error: unknown) => databaseUnavailable(error))
      expect(failed).toMatchObject({ status: 503, afterSeconds: 5 })
      await promote()
      await expect.poll(() => write().catch(() => "not yet")).toEqual([{ done: 1 }])
      // It was copied before the first write, and follows nobody.
      expect(await run(second.url("postgres", "postgres"), "select count(*)::int as rows from log")).toEqual([
        { rows: 1 },
      ])
    })

    test("if none takes writes, that is said", async () => {
      const { first, second } = await twoServers()
      await kill(first)
      const failed = await openClient(addressOf(second, first), {}).catch((error: unknown) => error)
      expect(databaseUnavailable(failed)).toMatchObject({ status: 503 })
    })
  },
)
