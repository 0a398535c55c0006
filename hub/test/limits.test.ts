import { Hono, type MiddlewareHandler } from "hono"
import { describe, expect, test } from "vitest"
import { openHub } from "../../src/hub-client/client.ts"
import { limitLogins, limitRequests, limitUnknown, type RequestLimits } from "../src/http/limits.ts"
import { migrate } from "../src/store/migrate.ts"
import { MIGRATIONS } from "../src/store/migrations.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { HUB_URL, hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { CLIENT, startProvider } from "./support/provider.ts"
import { PushRefused, pushOver } from "./support/push-over.ts"
import { hubEnv, request, startHub } from "./support/server.ts"
import { API } from "./support/share.ts"

/** An app behind a limit, with its own clock; `/v1/slow` answers once it is released. */
function behind(limit: (now: () => number) => MiddlewareHandler) {
  const clock = { now: 1_000_000 }
  const held: (() => void)[] = []
  const app = new Hono().use(limit(() => clock.now)).all("*", async (c) => {
    if (c.req.path === "/v1/slow") await new Promise<void>((resolve) => held.push(resolve))
    return c.body(null, 204)
  })
  app.onError((error, c) =>
    c.text(error.message, (error as unknown as { status: 429 }).status, {
      "Retry-After": String((error as unknown as { afterSeconds: number }).afterSeconds),
    }),
  )
  const ask = async (token: string, path: string) => {
    const response = await app.request(path, { headers: { authorization: `Bearer ${token}` } })
    return [response.status, response.headers.get("retry-after")]
  }
  return { ask, clock, held }
}

describe("unknown tokens", () => {
  const asks = (perMinute: number) => {
    const clock = { now: 1_000_000 }
    const lookups: string[] = []
    const holder = limitUnknown(
      perMinute,
      async (token: string) => {
        lookups.push(token)
        return token.startsWith("good") ? { token } : undefined
      },
      () => clock.now,
    )
    const ask = (token: string) =>
      holder(token).then(
        (found) => (found ? "known" : "unknown"),
        (error: { status: number; afterSeconds: number }) => [error.status, error.afterSeconds],
      )
    return { ask, lookups, clock }
  }

  test("are limited per minute for all clients together, and holders of known tokens notice nothing", async () => {
    const { ask, lookups, clock } = asks(6)
    expect(await ask("good-1")).toBe("known")
    for (let i = 0; i < 6; i++) expect(await ask(`bad-${i}`)).toBe("unknown")
    expect(await ask("bad-7")).toEqual([429, 10])
    expect(lookups).not.toContain("bad-7")
    const known = await Promise.all(Array.from({ length: 20 }, () => ask("good-1")))
    expect(known).toEqual(Array(20).fill("known"))
    expect(await ask("good-2")).toEqual([429, 10])
    clock.now += 10_000
    expect(await ask("good-2")).toBe("known")
    expect(await ask("bad-8")).toBe("unknown")
    expect(await ask("bad-9")).toEqual([429, 10])
  })

  test("include expired ones, and many that arrive at once", async () => {
    const { ask, lookups } = asks(6)
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(`bad-${i}`)))
    expect(answers.filter((one) => one === "unknown")).toHaveLength(6)
    expect(lookups).toHaveLength(6)
    expect(await asks(0).ask("bad")).toBe("unknown")
  })

  test.skipIf(!hasPostgres)("get 429 with Retry-After on every route that takes one, over HTTP", async () => {
    const { team, tokens } = await hubWithPeople()
    const { url } = await startHub(hubEnv(team, { DEX_HUB_UNKNOWN_TOKENS_PER_MINUTE: "3" }))
    const ask = async (token: string, path = "/v1/me") => {
      const { status, headers } = await request(
        url,
        token,
        path === "/mcp" ? "POST" : "GET",
        path,
        path === "/mcp" ? {} : undefined,
      )
      return [status, headers.get("retry-after")]
    }
    expect((await ask(tokens.ann))[0]).toBe(200)
    for (let i = 0; i < 3; i++) expect(await ask(`dexh_${i}`)).toEqual([401, null])
    expect(await ask("dexh_x")).toEqual([429, expect.stringMatching(/^\d+$/)])
    expect(await ask("dexh_x", "/mcp")).toEqual([429, expect.stringMatching(/^\d+$/)])
    expect((await ask(tokens.ann))[0]).toBe(200)
  })
})

describe("requests with one token", () => {
  const limited = (limits: RequestLimits) => behind((now) => limitRequests(limits, now))

  test("have limits per minute for pushes and for reads, which refill gradually", async () => {
    const { ask, clock } = limited({ pushesPerMinute: 6, readsPerMinute: 2, atOnce: 0 })
    for (let i = 0; i < 2; i++) expect(await ask("a", "/v1/me")).toEqual([204, null])
    expect(await ask("a", "/v1/me")).toEqual([429, "30"])
    expect(await ask("a", "/v1/push/plan")).toEqual([204, null])
    expect(await ask("b", "/v1/me")).toEqual([204, null])
    clock.now += 30_000
    expect(await ask("a", "/v1/me")).toEqual([204, null])
    expect(await ask("a", "/v1/me")).toEqual([429, "30"])
    clock.now += 3_600_000
    for (let i = 0; i < 2; i++) expect(await ask("a", "/v1/me")).toEqual([204, null])
    expect(await ask("a", "/v1/me")).toEqual([429, "30"])
  })

  test("are limited at the same time, and 0 means no limit", async () => {
    const { ask, held } = limited({ pushesPerMinute: 0, readsPerMinute: 0, atOnce: 2 })
    const slow = [ask("a", "/v1/slow"), ask("a", "/v1/slow")]
    await expect.poll(() => held.length).toBe(2)
    expect(await ask("a", "/v1/me")).toEqual([429, "1"])
    expect(await ask("b", "/v1/me")).toEqual([204, null])
    for (const release of held) release()
    expect(await Promise.all(slow)).toEqual([
      [204, null],
      [204, null],
    ])
    for (let i = 0; i < 50; i++) expect(await ask("a", "/v1/me")).toEqual([204, null])
  })
})

describe("logins", () => {
  test("have a limit per minute for everybody together, regardless of their tokens", async () => {
    const { ask, clock } = behind((now) => limitLogins({ loginsPerMinute: 2, loginsAtOnce: 0 }, now))
    for (const who of ["a", "b"]) expect(await ask(who, "/")).toEqual([204, null])
    for (const who of ["a", "c"]) expect(await ask(who, "/")).toEqual([429, "30"])
    clock.now += 30_000
    expect(await ask("c", "/")).toEqual([204, null])
    expect(await ask("d", "/")).toEqual([429, "30"])
  })

  test("are limited at the same time, and 0 means no limit", async () => {
    const { ask, held } = behind((now) => limitLogins({ loginsPerMinute: 0, loginsAtOnce: 2 }, now))
    const slow = [ask("a", "/v1/slow"), ask("b", "/v1/slow")]
    await expect.poll(() => held.length).toBe(2)
    expect(await ask("c", "/")).toEqual([429, "1"])
    for (const release of held) release()
    await Promise.all(slow)
    for (let i = 0; i < 50; i++) expect(await ask("c", "/")).toEqual([204, null])
  })
})

describe.skipIf(!hasPostgres)("a hub's limits", () => {
  test("a client that starts logins or tries codes in a loop is refused, and the identity provider is not called", async () => {
    const { team, tokens } = await hubWithPeople()
    const provider = await startProvider({})
    const { url } = await startHub(
      hubEnv(team, {
        DEX_HUB_URL: HUB_URL,
        DEX_HUB_OIDC_ISSUER: provider.issuer,
        DEX_HUB_OIDC_CLIENT_ID: CLIENT,
        DEX_HUB_LOGINS_PER_MINUTE: "1",
      }),
    )
    const begin = () => request(url, undefined, "POST", "/v1/login/device")
    expect((await begin()).status).toBe(200)
    const refused = await begin()
    expect(refused).toMatchObject({
      status: 429,
      body: { error: { code: "too_many", message: expect.stringContaining("More than 1 logins were started") } },
    })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(provider.calls.device).toBe(1)
    const invite = () => request(url, undefined, "POST", "/v1/login/invitation", { code: "guessed" })
    expect([(await invite()).status, (await invite()).status]).toEqual([403, 429])
    expect((await request(url, undefined, "GET", "/v1/login")).status).toBe(200)
    expect((await request(url, tokens.ann, "GET", "/v1/me")).status).toBe(200)
  })

  test("a client that asks too often learns when to come back, and does", async () => {
    const { team, tokens } = await hubWithPeople()
    const { url } = await startHub(hubEnv(team, { DEX_HUB_READS_PER_MINUTE: "60" }))
    const statuses = await Promise.all(
      Array.from({ length: 90 }, async () => {
        const { status, headers } = await request(url, tokens.ann, "GET", "/v1/me")
        return [status, headers.get("retry-after")]
      }),
    )
    expect(statuses).toContainEqual([429, "1"])
    const hub = openHub({ address: url, token: tokens.ann })
    expect((await hub.me()).member.name).toBe("ann")
    hub.close()
  })

  test("the quotas of a member and a tenant are shown, and pushes that exceed them are refused with advice", async () => {
    const { as, eve, hub, tokens, operator, admin, team } = await hubWithPeople()
    const push = (who: "ann" | "bob", id: string, text: string) => {
      const messages = [saying(1, text)]
      return pushOver({ url: () => hub.url, token: tokens[who] }, headNamed(id, messages), messages)
    }
    const stored = async (who: "ann" | "bob") => ((await as(who, "GET", "/v1/me")).body as { stored: object }).stored
    expect(await push("ann", "a", "wombat")).toBe(1)
    expect(await stored("ann")).toEqual({})
    expect((await admin("member", "quota", "ann", "much")).stderr).toContain("500MB")
    expect(await admin("member", "quota", "ann", "0.0001MB")).toMatchObject({ code: 0 })
    expect(await operator("tenant", "quota", "acme", "2GB")).toMatchObject({ stdout: "acme may store 2GB.\n" })

    // A new hub, because usage is cached for a minute.
    const fresh = await startHub(hubEnv(team))
    const me = async () => (await request(fresh.url, tokens.ann, "GET", "/v1/me")).body as { stored: object }
    const [row] = await team.asOwner<{ bytes: string }>("select sum(plain_bytes) as bytes from hub.chunk")
    const bytes = Number(row!.bytes)
    expect((await me()).stored).toEqual({ yours: { bytes, quota_bytes: 100 }, team: { bytes, quota_bytes: 2e9 } })
    const messages = [saying(1, "another")]
    const sender = { url: () => fresh.url, token: tokens.ann }
    const refused = await pushOver(sender, headNamed("b", messages), messages).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(PushRefused)
    expect(refused).toMatchObject({
      status: 507,
      message: expect.stringMatching(/"quota".*Ask the hub's operator.*unshare --forget/),
    })
    // What is already stored needs no room, and others have their own.
    expect(await pushOver(sender, headNamed("a", [saying(1, "wombat")]), [saying(1, "wombat")])).toBe(1)
    expect(await pushOver({ ...sender, token: tokens.bob }, headNamed("c", messages), messages)).toBe(1)
    const client = openHub({ address: fresh.url, token: tokens.ann })
    const plan = { source: "codex", id: "x", digest: "0".repeat(64), chunks: ["0".repeat(64)] }
    await expect(client.plan({ project: API, conversations: [plan] })).rejects.toMatchObject({ trouble: "full" })
    client.close()
    expect(await team.asOwner("select from hub.conversation where native_id in ('b', 'x')")).toEqual([])
    expect(await admin("member", "quota", "ann", "none")).toMatchObject({ code: 0 })
    expect(
      await team.asOwner("select member, operator, detail from hub.audit where action = 'quota' order by id"),
    ).toEqual([
      { member: eve.member, operator: null, detail: { about: "ann", bytes: 100 } },
      { member: null, operator: "olga", detail: { bytes: 2e9 } },
      { member: eve.member, operator: null, detail: { about: "ann", bytes: "none" } },
    ])
  })

  test("the migration counts the compressed size of everything that was pushed before sizes were counted", async () => {
    const { team, hub, tokens } = await hubWithPeople()
    const messages = [saying(1, "wombat")]
    await pushOver({ url: () => hub.url, token: tokens.ann }, headNamed("a", messages), messages)
    const counted = () => team.asOwner("select stored_bytes from hub.conversation")
    const before = await team.asOwner("select sum(bytes) as stored_bytes from hub.chunk")
    await team.asOwner("update hub.conversation set stored_bytes = null")
    const fill = MIGRATIONS.findLast((step) => typeof step !== "string" && "batches" in step)!
    await migrate({ owner: team.owner, steps: [...MIGRATIONS, fill] })
    expect(await counted()).toEqual(before)
    expect(before).not.toEqual([{ stored_bytes: "0" }])
  })
})
