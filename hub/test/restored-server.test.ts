import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { RANK_WEIGHTS } from "../../src/search/rank.ts"
import { DEX, dex } from "../../test/support/dex.ts"
import { claudeSession } from "../../test/support/home.ts"
import { tempDir } from "../../test/support/temp.ts"
import { createFollower } from "../src/search/follow.ts"
import { openFts5 } from "../src/search/fts5.ts"
import { openWords } from "../src/search/opensearch/team-words.ts"
import type { Database, Viewer } from "../src/store/connection.ts"
import { openTenantHistory } from "../src/store/history.ts"
import { accessOf } from "../src/store/member-access.ts"
import { forgetPushed } from "../src/store/push.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { followAll, newCluster, newIndexer, putInCluster } from "./support/opensearch.ts"
import { addressesOf, hasPostgres, openTest, testServer } from "./support/postgres.ts"
import { hubEnv, startHub, tokenFor } from "./support/server.ts"
import { backUpPostgres, type StartedPostgres } from "./support/start-postgres.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

const PROJECT = "git.test/acme/api"
const idOf = (n: number) => `${String(n).padStart(8, "0")}-1111-4222-8333-444444444444`

/** Engines whose index outlives the PostgreSQL that they followed. `open` opens the same index beside another one. */
const ENGINES: Record<string, (team: Team, tenant: number) => Promise<(db: Database) => ReturnType<typeof openFiles>>> =
  {
    FTS5: async () => {
      const data = tempDir()
      return (db) => openFiles(db, data)
    },
    ...(process.env.DEX_TEST_CLUSTER && {
      OpenSearch: async (team: Team, tenant: number) => {
        await putInCluster(team, tenant)
        const cluster = await newCluster()
        return (db: Database) => {
          const indexer = newIndexer(db, cluster)
          const engine = openWords(db, cluster, openFts5(tempDir()))
          onTestFinished(() => engine.close())
          return { engine, follow: () => followAll(indexer), end: () => indexer.close() }
        }
      },
    }),
  }

function openFiles(db: Database, data: string) {
  const follower = createFollower(db, data)
  const engine = openFts5(data)
  const close = () => {
    follower.close()
    engine.close()
  }
  onTestFinished(close)
  const follow = async () => {
    while (!(await follower.step()));
  }
  return { engine, follow, end: async () => close() }
}

async function newOwnTeam() {
  const team = await newTeam()
  const tenant = await newTenant(team)
  const ann = await newMember(team, tenant, "ann")
  await newProject(team, tenant, PROJECT, { own: [ann] })
  return { team, tenant, ann }
}

/** Another server with the files of a backup of this one, which continues the database from there. */
async function backUp(team: Team, from?: StartedPostgres) {
  const start = backUpPostgres((from ?? (await testServer())).url)
  return async () => {
    const server = await start()
    const [row] = await team.asOwner<{ name: string }>("select current_database() as name")
    const database = { ...team, ...addressesOf(server.url, row!.name) }
    return { server, later: { ...database, db: openTest(database) } }
  }
}

async function push({ db, ...team }: Team, author: Viewer, id: string) {
  const messages = [saying(1, "a wombat")]
  return pushOne({ ...team, db }, author, { project: PROJECT, head: headNamed(id, messages), messages })
}

async function foundIn({ engine }: ReturnType<typeof openFiles>, db: Database, viewer: Viewer) {
  const words = (await engine.open(viewer.tenant))!
  const { access } = await accessOf(db, viewer, words.followed)
  const filter = { weights: RANK_WEIGHTS.columns, limit: 100, match: [{ words: "wombat" }] }
  const found = await (await words.within(access)).find(filter)
  return found.map(({ ref }) => ref.id).sort()
}

describe.skipIf(!hasPostgres || process.env.DEX_TEST_DATABASE_URL !== undefined)("a restored PostgreSQL", () => {
  test.each(Object.keys(ENGINES))("gives numbers again, and %s finds what it wrote and nothing else", async (name) => {
    const { team, tenant, ann } = await newOwnTeam()
    const open = await ENGINES[name]!(team, tenant)
    await push(team, ann, "a")
    await push(team, ann, "b")
    const restore = await backUp(team)
    await push(team, ann, "c")
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "a" }])
    const before = open(team.db)
    await before.follow()
    expect(await foundIn(before, team.db, ann)).toEqual(["b", "c"])
    await before.end()

    const { later } = await restore()
    await push(later, ann, "d")
    // The same number as before, at which the index would have nothing to do.
    expect((await push(later, ann, "e")).seq).toBe(4)
    const after = open(later.db)
    await after.follow()
    expect(await foundIn(after, later.db, ann)).toEqual(["a", "b", "d", "e"])
    await push(later, ann, "f")
    await after.follow()
    expect(await foundIn(after, later.db, ann)).toEqual(["a", "b", "d", "e", "f"])
  })

  test("goes on with an index that has nothing but what was restored", async () => {
    const { team, tenant, ann } = await newOwnTeam()
    await push(team, ann, "a")
    await push(team, ann, "b")
    const { token } = await openTenantHistory(team.db, tenant).changes(undefined, 100)
    const restore = await backUp(team)
    await push(team, ann, "c")
    const lost = (await openTenantHistory(team.db, tenant).changes(undefined, 100)).token

    const { later, server } = await restore()
    const history = openTenantHistory(later.db, tenant)
    expect(await history.changes(token, 100)).toMatchObject({ token, rebuild: false, changes: [] })
    await push(later, ann, "d")
    await push(later, ann, "e")
    const now = await history.changes(token, 100)
    expect(now).toMatchObject({ rebuild: false, token: `${await history.id()}@4` })
    expect(now.changes.map(({ ref }) => ref!.id)).toEqual(["d", "e"])
    expect(now.token.split("@")[0]).not.toBe(token.split("@")[0])
    expect(await history.changes(lost, 100)).toMatchObject({ rebuild: true })
    // Every PostgreSQL before the last one counts.
    const { later: again } = await (await backUp(later, server))()
    await push(again, ann, "f")
    const newest = openTenantHistory(again.db, tenant)
    expect((await newest.changes(token, 100)).changes.map(({ ref }) => ref!.id)).toEqual(["d", "e", "f"])
    expect((await newest.changes(now.token, 100)).changes.map(({ ref }) => ref!.id)).toEqual(["f"])
    expect(await newest.changes(lost, 100)).toMatchObject({ rebuild: true })
  })

  test("gets back from laptops what they had pushed since the backup", async () => {
    const { team, tenant, ann } = await newOwnTeam()
    const token = await tokenFor(team, ann)
    const home = tempDir()
    const project = join(home, "code", "api")
    mkdirSync(project, { recursive: true })
    const session = (n: number) =>
      claudeSession(home, {
        id: idOf(n),
        cwd: project,
        start: "2026-10-02T10:00:00Z",
        turns: [{ user: `wombat ${n}`, assistant: "ok" }],
      })
    const json = async (args: string[], input = "") => {
      const { code, stdout, stderr } = await dex(home, [...args, "--json"], {}, DEX, input, project)
      if (code !== 0) throw new Error(`dex ${args.join(" ")}: ${code} ${stderr}`)
      return JSON.parse(stdout.trim().split("\n").at(-1)!)
    }
    const hub = await startHub(hubEnv(team))
    session(1)
    await json(["sync"])
    await json(["hub", "login", hub.url, "--token-stdin"], token)
    expect(await json(["hub", "share", "--name", PROJECT, "--yes"])).toMatchObject({ pushed: { sent: 1 } })
    const restore = await backUp(team)
    session(2)
    await json(["sync"])
    await json(["hub", "push"])
    const onHub = async (db: Database) => {
      const { changes } = await openTenantHistory(db, tenant).changes(undefined, 100)
      return changes.map(({ ref }) => ref!.id).sort()
    }
    await expect.poll(() => onHub(team.db)).toEqual([idOf(1), idOf(2)])
    await hub.kill()

    const { later } = await restore()
    await startHub(hubEnv(later, { DEX_HUB_PORT: new URL(hub.url).port }))
    expect(await onHub(later.db)).toEqual([idOf(1)])
    session(3)
    await json(["sync"])
    await json(["hub", "push"])
    await expect.poll(() => onHub(later.db)).toEqual([idOf(1), idOf(2), idOf(3)])
    expect(await json(["hub", "push"])).toMatchObject({ pushed: { sent: 0 } })
  })
})
