import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import pg from "pg"
import { describe, expect, onTestFinished, test } from "vitest"
import { migrate } from "../src/store/migrate.ts"
import { MIGRATIONS, type MigrationStep } from "../src/store/migrations.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { hasPostgres, newDatabase } from "./support/postgres.ts"
import { PushRefused, pushOver } from "./support/push-over.ts"
import { canSearch, hubEnv, ownerEnv, request, startHub, tokenFor } from "./support/server.ts"
import { API } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

/** A checkout of the previous version, with its node_modules. If it is set, the upgrade from it is tested too. */
const BEFORE = process.env.DEX_HUB_BEFORE
if (!BEFORE) console.warn("DEX_HUB_BEFORE is not set: the upgrade from an older checkout is not tried.")

const MAX_MS = 300_000
const MAX_LOCK_SECONDS = 2

/** Steps that the next version could have: add, fill in, index, drop what nobody uses. */
const NEXT: MigrationStep[] = [
  ...MIGRATIONS,
  "alter table hub.conversation add column made_up int, add column not_used int",
  "alter table hub.conversation alter column made_up set default 1",
  {
    batches: `update hub.conversation set made_up = 1 where (tenant, id) in
      (select tenant, id from hub.conversation where made_up is null order by tenant, id limit 20)`,
  },
  { alone: "create index concurrently if not exists made_up on hub.conversation (tenant, made_up)" },
  { drops: "alter table hub.conversation drop column not_used", leastHub: MIGRATIONS.length },
]

/** The longest time that anybody waited for a lock, and that a migration blocked a table for everybody. */
function watchLocks({ owner }: Team) {
  const longest = { waited: 0, held: 0 }
  let isWatching = true
  const watching = (async () => {
    const client = new pg.Client({ connectionString: owner })
    await client.connect()
    while (isWatching) {
      const { rows } = await client.query<{ waited: number; held: number }>(`select
        coalesce(max(extract(epoch from clock_timestamp() - l.waitstart)), 0)::float as waited,
        coalesce(max(extract(epoch from clock_timestamp() - a.xact_start)) filter
          (where l.granted and l.mode = 'AccessExclusiveLock' and l.relation is not null), 0)::float as held
        from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database()
          and (a.application_name like 'dex-hub%') and (l.locktype = 'relation' or not l.granted)`)
      longest.waited = Math.max(longest.waited, rows[0]!.waited)
      longest.held = Math.max(longest.held, rows[0]!.held)
    }
    await client.end()
  })()
  return async () => {
    isWatching = false
    await watching
    return longest
  }
}

/** Some clients push and some search, on the hubs that are up, until stopped. Nobody may see an error. */
function startLoad(token: string, urls: string[]) {
  const done = { pushes: 0, searches: 0 }
  const errors: string[] = []
  let isOver = false
  let turn = 0
  const url = () => urls[turn++ % urls.length]!
  const repeat = async (work: (round: number) => Promise<void>) => {
    for (let round = 0; !isOver; round++)
      await work(round).catch((error: Error) => {
        errors.push(error.message)
      })
  }
  const pusher = (n: number) =>
    repeat(async (round) => {
      const messages = [saying(1, `wombat of ${n} in round ${round}`)]
      await pushOver({ url, token }, headNamed(`p${n}-${round}`, messages), messages)
      done.pushes++
    })
  const searcher = () =>
    repeat(async () => {
      const { status, body } = await request(url(), token, "POST", "/v1/tools/search", { query: "wombat", limit: 3 })
      if (status !== 200) throw new PushRefused(status, body)
      done.searches++
    })
  const all = Promise.all([pusher(0), pusher(1), pusher(2), pusher(3), searcher(), searcher()])
  /** Waits until this many more were pushed, and one more was found. */
  const more = async (pushes: number) => {
    const from = { ...done }
    const isEnough = () => done.pushes >= from.pushes + pushes && done.searches > from.searches
    await expect.poll(() => isEnough() || errors.length > 0).toBe(true)
  }
  const end = async () => {
    isOver = true
    await all
    return { ...done, errors }
  }
  return { more, end }
}

async function people(team: Team): Promise<string> {
  const tenant = await newTenant(team)
  const ann = await newMember(team, tenant, "ann")
  await newProject(team, tenant, API, { own: [ann] })
  return tokenFor(team, ann)
}

describe.skipIf(!hasPostgres)("upgrading", () => {
  /** Upgrades one hub after the other, while people keep working. */
  async function upgradeUnderLoad(
    team: Team,
    { token, main, next }: { token: string; main?: string; next: () => Promise<void> },
  ) {
    const env = () => hubEnv(team, { DEX_HUB_DRAIN_SECONDS: "1" })
    const older = await startHub(env(), main)
    const urls = [older.url]
    await canSearch(older.url, token)
    const load = startLoad(token, urls)
    await load.more(40)
    const locks = watchLocks(team)
    await next()
    await load.more(20)
    const newer = await startHub(env())
    await canSearch(newer.url, token)
    urls.push(newer.url)
    await load.more(40)
    urls.shift()
    const ended = once(older.child, "exit")
    older.child.kill("SIGTERM")
    await ended
    await load.more(20)
    const longest = await locks()
    const done = await load.end()
    console.log({ ...done, ...longest })
    expect(done.errors).toEqual([])
    expect(Math.max(longest.waited, longest.held)).toBeLessThan(MAX_LOCK_SECONDS)
    const kept = await team.asOwner("select from hub.conversation where rev > 0")
    expect(kept).toHaveLength(done.pushes)
    for (const { log } of [older, newer]) expect(log.filter((line) => line.includes('"error"'))).toEqual([])
  }

  test(
    "to the next version: nobody sees an error, and no lock is long, even while a dump runs and two migrate at once",
    async () => {
      const team = await newTeam()
      const next = async () => {
        const dump = new pg.Client({ connectionString: team.owner })
        await dump.connect()
        await dump.query("begin; select from hub.conversation limit 1")
        const migrated = Promise.all([1, 2].map(() => migrate({ owner: team.owner, steps: NEXT })))
        const waiting = "select from pg_locks where not granted and mode = 'AccessExclusiveLock'"
        const isWaiting = async () => (await team.asOwner(waiting)).length
        await expect.poll(isWaiting, { interval: 20 }).toBe(1)
        await expect.poll(isWaiting, { interval: 20 }).toBe(0)
        await dump.end()
        expect((await migrated).map(({ from }) => from).sort((a, b) => a - b)).toEqual([MIGRATIONS.length, NEXT.length])
      }
      await upgradeUnderLoad(team, { token: await people(team), next })
      expect(await team.asOwner("select from hub.conversation where made_up is null")).toEqual([])
    },
    MAX_MS,
  )

  test.skipIf(!BEFORE)(
    "from an older checkout: nobody sees an error, and no lock is long",
    async () => {
      const team = await newTeam({ migrated: false })
      const main = join(BEFORE!, "hub/src/main.ts")
      const run = (...args: string[]) =>
        execFileSync(process.execPath, [main, ...args], { env: ownerEnv(team), encoding: "utf8" })
      run("migrate")
      run("tenant", "add", "acme")
      const [token] = /dexh_\S+/.exec(run("member", "add", "ann", "--tenant", "acme"))!
      run("grant", "ann", API, "--tenant", "acme", "--level", "own", "--new")
      await team.asOwner("insert into hub.consent (tenant, member, project, what) values (1, 1, 1, '{said}')")
      await upgradeUnderLoad(team, { token, main, next: async () => void (await migrate(team)) })
    },
    MAX_MS,
  )

  test(
    "a migration that cannot lock its table says what to do, and changes nothing",
    async () => {
      const { owner } = await newDatabase()
      const dump = new pg.Client({ connectionString: owner })
      await dump.connect()
      onTestFinished(() => dump.end())
      await dump.query("begin; select from hub.conversation limit 1")
      const steps = [...MIGRATIONS, "create table hub.never (); alter table hub.conversation add column never int"]
      await expect(migrate({ owner, steps })).rejects.toThrow(/long transaction.*Run `dex-hub migrate` again/)
      const { rows } = await dump.query(
        "select to_regclass('hub.never') as made, max(version) as version from hub.migration",
      )
      expect(rows).toEqual([{ made: null, version: MIGRATIONS.length }])
    },
    MAX_MS,
  )

  test("a hub on older tables tells everybody so, until they are migrated", { timeout: MAX_MS }, async () => {
    await newDatabase() // creates the roles
    const team = await newTeam({ migrated: false })
    const hub = await startHub(hubEnv(team))
    const ask = async (path: string) => {
      const { status, body } = await request(hub.url, "dexh_x", "GET", path)
      return [status, body]
    }
    const words = "The hub's tables do not exist. Run: dex-hub migrate"
    expect(await ask("/readyz")).toEqual([503, `${words}\n`])
    expect(await ask("/healthz")).toEqual([200, "ok\n"])
    expect(await ask("/v1/me")).toEqual([503, { error: { code: "not_ready", message: words } }])
    expect(hub.log.find((line) => line.includes("not_ready"))).toContain(words)
    await migrate({ owner: team.owner, steps: MIGRATIONS.slice(0, 1) })
    expect(await ask("/readyz")).toEqual([503, expect.stringContaining("needs")])
    await migrate(team)
    await expect.poll(async () => (await ask("/v1/me"))[0]).toBe(401)
    await expect.poll(() => ask("/readyz")).toEqual([200, "ready\n"])
  })

  test("a hub on newer tables keeps working until something that it needs is gone", {
    timeout: MAX_MS,
  }, async () => {
    const team = await newTeam()
    const { owner } = team
    const token = await people(team)
    await migrate({ owner, steps: NEXT })
    expect(await migrate({ owner })).toEqual({ from: NEXT.length, to: NEXT.length })
    const { url } = await startHub(hubEnv(team))
    const status = async (path: string) => (await request(url, token, "GET", path)).status
    await expect.poll(() => status("/readyz")).toBe(200)
    expect(await status("/v1/me")).toBe(200)
    await migrate({ owner, steps: [...NEXT, { drops: "select 1", leastHub: MIGRATIONS.length + 1 }] })
    expect([await status("/readyz"), await status("/v1/me")]).toEqual([503, 503])
    await expect(migrate({ owner })).rejects.toThrow("Install a newer dex-hub.")
  })
})
