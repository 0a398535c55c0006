import { randomUUID } from "node:crypto"
import pg from "pg"
import { onTestFinished } from "vitest"
import type { Database, MemberRole, Query, Viewer } from "../../src/store/connection.ts"
import { addMember, addTenant } from "../../src/store/people.ts"
import { newDatabase, openTest, type TestDatabase } from "./postgres.ts"

/** A hub's database with its owner's connection, to set up tests. */
export type Team = TestDatabase & { db: Database; asOwner: Query }

export async function newTeam(options: { migrated?: boolean } = {}): Promise<Team> {
  const database = await newDatabase(options)
  const db = openTest(database)
  const client = new pg.Client({ connectionString: database.owner })
  client.on("error", () => {}) // a test may stop the server
  await client.connect()
  onTestFinished(() => client.end())
  // One after the other, because a connection runs one statement at a time.
  let last: Promise<unknown> = Promise.resolve()
  const asOwner: Query = async (text, values) => {
    const done = last.then(() => client.query(text, values))
    last = done.catch(() => {})
    return (await done).rows
  }
  return { ...database, db, asOwner }
}

export async function newTenant(team: Team, slug = `t${randomUUID().slice(0, 8)}`): Promise<number> {
  return addTenant(team.asOwner, team.db.keys, slug)
}

export async function newMember(
  team: Team,
  tenant: number,
  name: string,
  role: MemberRole = "member",
): Promise<Viewer> {
  return { tenant, member: await addMember(team.asOwner, { tenant, name, role }), role, name }
}

/** Adds a project with these grants. Members who may push to it also consent to share it. */
export async function newProject(
  team: Team,
  tenant: number,
  key: string,
  grants: Partial<Record<"read" | "write" | "own", Viewer[]>>,
): Promise<number> {
  const [project] = await team.asOwner<{ id: number }>(
    "insert into hub.project (tenant, key) values ($1, $2) returning id",
    [tenant, key],
  )
  const { id } = project!
  for (const [level, members] of Object.entries(grants))
    for (const { member } of members) {
      await team.asOwner("insert into hub.project_grant (tenant, project, member, level) values ($1, $2, $3, $4)", [
        ...[tenant, id, member, level],
      ])
      if (level !== "read")
        await team.asOwner(
          "insert into hub.consent (tenant, member, project, what) values ($1, $2, $3, '{said,called,returned}')",
          [tenant, member, id],
        )
    }
  return id
}
