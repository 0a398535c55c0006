import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { databaseUnavailable, openDatabase, type Query } from "../src/store/connection.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { newMember, newTeam, newTenant } from "./support/team.ts"

/** PostgreSQL behind a proxy that cuts connections, as a fail-over does. */
async function cuttable(address: string) {
  const url = new URL(address.replace("@/", "@localhost/"))
  const folder = url.searchParams.get("host")
  const [host, port] = [url.hostname, Number(url.port || 5432)]
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const to = folder ? connect(join(folder, `.s.PGSQL.${port}`)) : connect(port, host)
    open.add(client)
    client.pipe(to).pipe(client)
    client
      .on("error", () => {})
      .on("close", () => {
        open.delete(client)
        to.destroy()
      })
    to.on("error", () => {}).on("close", () => client.destroy())
  })
  const place = tempDir()
  server.listen(join(place, `.s.PGSQL.${port}`))
  await once(server, "listening")
  onTestFinished(() => void server.close())
  const through = (of: string) => {
    const at = new URL(of.replace("@/", "@localhost/"))
    at.searchParams.set("host", place)
    return at.href
  }
  const cut = async () => {
    const closed = [...open].map((socket) => once(socket, "close"))
    for (const socket of open) socket.destroy()
    await Promise.all(closed)
  }
  return { through, cut }
}

describe.skipIf(!hasPostgres)("a connection to PostgreSQL that is cut", () => {
  const NOBODY = { "hub.tenant": "1" }
  async function opened() {
    const team = await newTeam()
    const { through, cut } = await cuttable(team.app)
    const db = openDatabase({ ...team, app: through(team.app), index: through(team.index) })
    onTestFinished(() => db.close())
    const isWell = () => db.asNobody(NOBODY, (query) => query("select 3 as x"))
    return { team, db, cut, isWell }
  }

  test.each(["in the middle of a statement", "between two statements"])(
    "%s fails that transaction only",
    async (when) => {
      const { db, cut, isWell } = await opened()
      const failed = await db
        .asNobody(NOBODY, async (query) => {
          await query("select 1")
          const statement = when.startsWith("in") ? query("select pg_sleep(60)") : undefined
          const settled = statement?.catch((error: unknown) => error)
          await cut()
          const error = await settled
          if (error) throw error
          return query("select 2")
        })
        .catch((error: unknown) => error)
      expect(databaseUnavailable(failed)).toMatchObject({ status: 503, afterSeconds: expect.any(Number) })
      expect(await isWell()).toEqual([{ x: 3 }])
    },
  )

  test("by PostgreSQL itself, or that leads to a read-only server, is not used again", async () => {
    const { team, db, isWell } = await opened()
    const pidAnd = async (statement: string) => {
      let pid = 0
      const failed = await db
        .asNobody(NOBODY, async (query) => {
          pid = (await query<{ pid: number }>("select pg_backend_pid() as pid"))[0]!.pid
          return query(statement)
        })
        .catch((error: unknown) => error)
      expect(databaseUnavailable(failed)).toMatchObject({ status: 503 })
      expect(await team.asOwner("select from pg_stat_activity where pid = $1 and state = 'idle'", [pid])).toEqual([])
    }
    await team.asOwner(
      "create function public.gone() returns void language plpgsql as $$ begin raise exception using errcode = '57P01'; end $$",
    )
    await pidAnd("select pg_terminate_backend(pg_backend_pid())")
    await pidAnd("select public.gone()")
    await team.asOwner(
      "create function public.late() returns void language plpgsql as $$ begin raise exception using errcode = '25006'; end $$",
    )
    await pidAnd("select public.late()")
    expect(await isWell()).toEqual([{ x: 3 }])
  })

  test("a process that is paused in the middle of a push holds the others up for 20 seconds at most", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    const increase = (query: Query) =>
      query("update hub.feed set seq = seq + 1 where tenant = $1 returning seq", [tenant])
    const locked = Promise.withResolvers<unknown>()
    const resumed = Promise.withResolvers<void>()
    const paused = team.db.as(ann, async (query) => {
      locked.resolve(await increase(query))
      await resumed.promise
      return query("select 1")
    })
    const failed = paused.catch((error: unknown) => error)
    expect(await locked.promise).toEqual([{ seq: 1 }])
    expect(await team.db.as(ann, increase)).toEqual([{ seq: 1 }])
    resumed.resolve()
    expect(databaseUnavailable(await failed)).toMatchObject({ status: 503 })
  })

  test("while a request is answered gives a 503 that says when to try again, and the hub keeps working", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const token = await tokenFor(team, await newMember(team, tenant, "ann"))
    const { through, cut } = await cuttable(team.app)
    const hub = await startHub(hubEnv({ ...team, app: through(team.app), index: through(team.index) }))
    const me = () => request(hub.url, token, "GET", "/v1/me")
    expect((await me()).status).toBe(200)
    await team.asOwner("begin")
    await team.asOwner("lock table hub.project in access exclusive mode")
    const waiting = me()
    const isWaiting = () =>
      team.asOwner("select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
    await expect.poll(isWaiting).toHaveLength(1)
    await cut()
    const { status, headers, body } = await waiting
    await team.asOwner("rollback")
    expect(status).toBe(503)
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0)
    expect(body).toMatchObject({ error: { code: "database" } })
    expect((await request(hub.url, undefined, "GET", "/healthz")).status).toBe(200)
    await expect.poll(async () => (await me()).status).toBe(200)
    expect(hub.child.exitCode).toBe(null)
  })
})
