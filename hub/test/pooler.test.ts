import { spawn } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { openDatabase, type Viewer } from "../src/store/connection.ts"
import { openViewerHistory } from "../src/store/history.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { pushOver } from "./support/push-over.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { API, share } from "./support/share.ts"
import { ordinaryUser } from "./support/start-postgres.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

const PROGRAM = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((path) => existsSync(path))
const isTried = hasPostgres && PROGRAM !== undefined && process.env.DEX_TEST_DATABASE_URL === undefined
if (!isTried) console.warn("No PgBouncer: install pgbouncer, or the hub is not tested with a pooler.")

const MAX_MS = 300_000

/** PgBouncer in transaction mode in front of this team's database, with one connection for each role. */
async function startPooler(team: Team): Promise<(address: string) => string> {
  const folder = mkdtempSync(join(tmpdir(), "dex-pooler-"))
  const user = ordinaryUser()
  const config = join(folder, "pgbouncer.ini")
  const users = join(folder, "users.txt")
  writeFileSync(users, ["dex_hub_app", "dex_hub_index"].map((role) => `"${role}" ""\n`).join(""))
  writeFileSync(
    config,
    `[databases]
* = host=${dirname(team.files!)}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = ${folder}
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = 1
max_client_conn = 200
`,
  )
  if (user) for (const path of [folder, config, users]) chownSync(path, user.uid, user.gid)
  const child = spawn(PROGRAM!, ["-q", config], { ...user, stdio: "ignore" })
  onTestFinished(() => {
    child.kill("SIGKILL")
    rmSync(folder, { recursive: true, force: true })
  })
  const through = (address: string) => {
    const [before] = address.split("?")
    return `${before}?host=${encodeURIComponent(folder)}&port=6432`
  }
  await expect.poll(() => run(through(team.app), "select 1")).toHaveLength(1)
  return through
}

describe.skipIf(!isTried)("a hub behind PgBouncer in transaction mode", () => {
  async function place() {
    const team = await newTeam()
    const viewers: Viewer[] = []
    for (const slug of ["acme", "bolt", "core"]) {
      const tenant = await newTenant(team, slug)
      const members = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
      await newProject(team, tenant, API, { own: members })
      for (const one of members) await share(team, one, `${slug}-${one.name}`, ["wombat"], { visibility: "private" })
      viewers.push(...members)
    }
    const through = await startPooler(team)
    return { team, viewers, through }
  }

  test(
    "keeps its walls while everybody shares one connection",
    async () => {
      const { team, viewers, through } = await place()
      const db = openDatabase({
        ...team,
        app: through(team.app),
        index: through(team.index),
        connections: 8,
        prepared: false,
      })
      onTestFinished(() => db.close())
      const all = Array.from({ length: 10 }, () => viewers).flat()
      const seen = await Promise.all(
        all.map(async (viewer) => {
          const rows = await db.as(viewer, (query) =>
            query<{ id: string }>("select native_id as id from hub.conversation"),
          )
          expect(await openViewerHistory(db, viewer).stats()).toMatchObject({ conversations: 1 })
          const bare = await db.asNobody({}, (query) => query("select from hub.conversation"))
          return [...rows.map(({ id }) => id), bare.length]
        }),
      )
      const slugs = new Map(viewers.map(({ tenant }, i) => [tenant, ["acme", "bolt", "core"][Math.floor(i / 2)]]))
      expect(seen).toEqual(all.map(({ tenant, name }) => [`${slugs.get(tenant)}-${name}`, 0]))
    },
    MAX_MS,
  )

  test(
    "pushes and searches",
    async () => {
      const { team, viewers, through } = await place()
      const hub = await startHub(
        hubEnv(team, {
          DEX_HUB_DATABASE_URL: through(team.app),
          DEX_HUB_INDEX_URL: through(team.index),
          DEX_HUB_PREPARED: "no",
        }),
      )
      const token = await tokenFor(team, viewers[0]!)
      const messages = [saying(1, "a numbat")]
      for (const id of ["x", "y", "z"])
        expect(await pushOver({ url: () => hub.url, token }, headNamed(id, messages), messages)).toBe(1)
      const total = async () =>
        ((await request(hub.url, token, "POST", "/v1/tools/search", { query: "numbat" })).body as { total: number })
          .total
      await expect.poll(total).toBe(3)
      expect(hub.log.filter((line) => line.includes('"error"'))).toEqual([])
    },
    MAX_MS,
  )
})
