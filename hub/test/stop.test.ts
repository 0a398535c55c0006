import { once } from "node:events"
import { Hono } from "hono"
import pg from "pg"
import { describe, expect, onTestFinished, test } from "vitest"
import { serveApp } from "../src/http/serve.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { PushRefused, pushOver } from "./support/push-over.ts"
import { canSearch, hubEnv, request, startHub, type TestHub, tokenFor } from "./support/server.ts"
import { API } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const MAX_MS = 300_000

test("an idle connection is kept longer than proxies keep theirs", async () => {
  const serving = await serveApp(
    new Hono().get("/", (c) => c.text("ok")),
    { host: "127.0.0.1", port: 0 },
  )
  onTestFinished(async () => void (await serving.close()))
  const { headers } = await fetch(`http://127.0.0.1:${serving.port}/`)
  expect(headers.get("keep-alive")).toBe("timeout=65")
})

describe.skipIf(!hasPostgres)("a hub that is stopped", () => {
  async function hub(drainSeconds: string) {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, API, { own: [ann] })
    const env = hubEnv(team, { DEX_HUB_DRAIN_SECONDS: drainSeconds })
    return { team, env, token: await tokenFor(team, ann), server: await startHub(env) }
  }
  const ended = async ({ child }: TestHub): Promise<[code: number | null, signal: string | null]> =>
    child.exitCode === null ? ((await once(child, "exit")) as [number, null]) : [child.exitCode, null]
  const isStopping = ({ log }: TestHub) => expect.poll(() => log.join()).toContain('"stopping"')

  test(
    "reports that it is stopping, answers the requests in progress, and loses nothing",
    async () => {
      const { team, env, token, server } = await hub("1")
      const { url } = server
      await canSearch(url, token)
      const taken: string[] = []
      const notAnswered: string[] = []
      let searches = 0
      const untilClosed = async (work: (round: number) => Promise<void>) => {
        for (let round = 0; ; round++)
          try {
            await work(round)
          } catch (error) {
            // An error response is a failure; no response at all means that the hub ended.
            if (error instanceof PushRefused) throw error
            return
          }
      }
      const pusher = (n: number) =>
        untilClosed(async (round) => {
          const id = `p${n}-${round}`
          const messages = [saying(1, `wombat of ${n} in round ${round}`)]
          notAnswered.push(id)
          await pushOver({ url: () => url, token }, headNamed(id, messages), messages)
          taken.push(notAnswered.splice(notAnswered.indexOf(id), 1)[0]!)
        })
      const searcher = () =>
        untilClosed(async () => {
          const { status, body } = await request(url, token, "POST", "/v1/tools/search", { query: "wombat" })
          if (status !== 200) throw new PushRefused(status, body)
          searches++
        })
      const all = Promise.all([...Array.from({ length: 6 }, (_, n) => pusher(n)), searcher(), searcher()])
      await expect.poll(() => Math.min(taken.length, searches * 5)).toBeGreaterThan(20)
      const before = taken.length
      server.child.kill("SIGTERM")
      await isStopping(server)
      const ready = await request(url, undefined, "GET", "/readyz")
      expect([ready.status, ready.headers.get("connection")]).toEqual([503, "close"])
      expect(await ended(server)).toEqual([0, null])
      await all
      expect(taken.length).toBeGreaterThan(before)
      expect(server.log.join()).not.toContain('"error"')
      const kept = await team.asOwner<{ native_id: string }>("select native_id from hub.conversation where rev > 0")
      expect(kept.map(({ native_id }) => native_id).sort()).toEqual([...taken].sort())
      expect(notAnswered.length).toBeGreaterThan(0)

      // Its index is complete: after a restart, it finds every one of them.
      const again = await startHub(env)
      const count = async () =>
        ((await request(again.url, token, "POST", "/v1/tools/search", { query: "wombat" })).body as { total: number })
          .total
      await expect.poll(count).toBe(taken.length)
    },
    MAX_MS,
  )

  test("answers slow requests, and accepts no new ones", { timeout: MAX_MS }, async () => {
    const { team, token, server } = await hub("0")
    const blocker = new pg.Client({ connectionString: team.owner })
    await blocker.connect()
    onTestFinished(() => blocker.end())
    await blocker.query("begin; update hub.feed set seq = seq")
    const messages = [saying(1, "wombat")]
    const pushed = pushOver({ url: () => server.url, token }, headNamed("slow", messages), messages)
    const isWaiting = async () => (await team.asOwner("select from pg_locks where not granted")).length
    await expect.poll(isWaiting).toBeGreaterThan(0)
    server.child.kill("SIGTERM")
    const isClosed = () =>
      fetch(`${server.url}/healthz`).then(
        () => false,
        () => true,
      )
    await expect.poll(isClosed).toBe(true)
    await blocker.query("rollback")
    expect(await pushed).toBe(1)
    expect(await ended(server)).toEqual([0, null])
  })

  test("keeps answering after the reader of its log has exited, and stops normally", { timeout: MAX_MS }, async () => {
    const { server } = await hub("0")
    const { stdout } = server.child
    const closed = once(stdout!, "close")
    stdout!.destroy()
    await closed
    // Each request writes a line of the log.
    for (let i = 0; i < 3; i++) expect((await request(server.url, undefined, "GET", "/healthz")).status).toBe(200)
    server.child.kill("SIGTERM")
    expect(await ended(server)).toEqual([0, null])
  })

  test("ends at once after the second signal", { timeout: MAX_MS }, async () => {
    const { server } = await hub("600")
    server.child.kill("SIGTERM")
    await isStopping(server)
    server.child.kill("SIGINT")
    expect(await ended(server)).toEqual([1, null])
  })
})

test("a request that does not end is aborted and counted", async () => {
  const arrived = Promise.withResolvers<void>()
  const app = new Hono().get("/", () => {
    arrived.resolve()
    return new Promise<Response>(() => {})
  })
  const serving = await serveApp(app, { host: "127.0.0.1", port: 0 })
  const pending = fetch(`http://127.0.0.1:${serving.port}/`)
  const refused = expect(pending).rejects.toThrow()
  await arrived.promise
  expect(await serving.close(50)).toBe(1)
  await refused
})
