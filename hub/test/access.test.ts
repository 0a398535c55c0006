import { describe, expect, test } from "vitest"
import { decideRequest, grantAccess, membersOf, requestsFor } from "../src/store/access.ts"
import type { Database, Viewer } from "../src/store/connection.ts"
import { consentTo, withdrawConsent } from "../src/store/projects.ts"
import { planPush } from "../src/store/push.ts"
import { REQUEST_SCOPE } from "../src/store/scope.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres, run } from "./support/postgres.ts"
import { tokenFor } from "./support/server.ts"
import { API } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const KEY = "git.test/acme/new"
const path = (key: string) => encodeURIComponent(key)
const CONSENT = { what: ["said"] }

async function place() {
  const people = await hubWithPeople()
  const { team, tenant, as, call } = people
  const gus = await newMember(team, tenant, "gus")
  const token = await tokenFor(team, gus)
  const asGus = (method: string, where: string, body?: unknown) => call(token, method, where, body)
  const share = (key: string) => asGus("PUT", `/v1/consents/${path(key)}`, CONSENT)
  const requests = async (who: Parameters<typeof as>[0]) =>
    ((await as(who, "GET", "/v1/requests")).body as { requests: object[] }).requests
  const decide = (who: Parameters<typeof as>[0], decision: string, key = API, name = "gus") =>
    as(who, "PUT", `/v1/requests/${path(key)}/${name}`, { decision })
  const level = async (name: string, key = API) =>
    (
      await team.asOwner<{ level: string }>(
        `select g.level from hub.project_grant g join hub.member m on m.tenant = g.tenant and m.id = g.member
         join hub.project p on p.tenant = g.tenant and p.id = g.project where p.key = $1 and m.name = $2`,
        [key, name],
      )
    )[0]?.level
  const audited = async () =>
    (
      await team.asOwner<{ line: string }>(
        `select concat_ws(' ', m.name, a.action, a.target, a.detail ->> 'about', a.detail ->> 'level', a.detail ->> 'origin') as line
       from hub.audit a left join hub.member m on m.tenant = a.tenant and m.id = a.member
       where action in ('grant', 'grant_end', 'request', 'approve', 'deny', 'rule') order by a.id`,
      )
    ).map(({ line }) => line)
  return { ...people, gus, asGus, share, requests, decide, level, audited }
}

describe.skipIf(!hasPostgres)("a refused share", () => {
  test("is a request that only owners and admins see, once, with the member's name and the project's key", async () => {
    const { share, requests, audited, asGus } = await place()
    const [first, second] = [await share(API), await share(API)]
    expect(first.status).toBe(403)
    expect(first.body).toEqual({
      error: {
        code: "refused",
        message: `${API} is not shared with you yet. dex has sent its owners a request. Run \`dex hub share\` again when one of them has approved it.`,
      },
    })
    expect(second.body).toEqual(first.body)
    const expected = [{ project: API, member: "gus", at: expect.stringMatching(/^\d{4}-.*Z$/) }]
    expect(await requests("ann")).toEqual(expected)
    expect(await requests("eve")).toEqual(expected)
    expect(await requests("bob")).toEqual([])
    expect((await asGus("GET", "/v1/requests")).body).toEqual({ requests: [] })
    expect((await asGus("GET", "/v1/me")).body).toMatchObject({ projects: [], requests: 0 })
    expect(await audited()).toEqual([`gus request ${API}`])
  })

  test("is approved once by an owner, after which the share is accepted", async () => {
    const { share, decide, requests, level, audited } = await place()
    await share(API)
    expect((await decide("bob", "approve")).status).toBe(404)
    expect(await level("gus")).toBeUndefined()
    expect((await decide("ann", "approve")).body).toEqual({ member: "gus", project: API, level: "write" })
    expect((await decide("ann", "approve")).status).toBe(404)
    expect(await requests("ann")).toEqual([])
    expect((await share(API)).status).toBe(204)
    expect(await level("gus")).toBe("write")
    expect(await audited()).toEqual([`gus request ${API}`, `ann approve ${API} gus write`])
  })

  test("is denied silently, and the owners are not asked again for 30 days", async () => {
    const { team, share, decide, requests, audited } = await place()
    const first = await share(API)
    expect((await decide("eve", "deny")).status).toBe(200)
    const second = await share(API)
    expect([second.status, second.body]).toEqual([first.status, first.body])
    expect(await requests("ann")).toEqual([])
    expect((await decide("ann", "approve")).status).toBe(404)
    await team.asOwner("update hub.access_request set denied_at = now() - interval '31 days'")
    await share(API)
    expect(await requests("ann")).toHaveLength(1)
    expect(await audited()).toEqual([`gus request ${API}`, `eve deny ${API} gus`, `gus request ${API}`])
  })

  test("becomes no request if the member has 20 already, even with many at once, and old ones do not count", async () => {
    const { team, tenant, ann, share, requests } = await place()
    const keys = Array.from({ length: 24 }, (_, i) => `git.test/acme/p${i}`)
    for (const key of keys) await newProject(team, tenant, key, { own: [ann] })
    const answers = (await Promise.all(keys.map(share))).map(
      ({ body }) => (body as { error: { code: string } }).error.code,
    )
    expect(answers.sort()).toEqual([...Array(20).fill("refused"), ...Array(4).fill("too_many_requests")])
    expect(await requests("ann")).toHaveLength(20)
    await team.asOwner("update hub.access_request set at = now() - interval '31 days'")
    expect(await requests("ann")).toEqual([])
    expect((await share(keys[0]!)).status).toBe(403)
    expect(await requests("ann")).toHaveLength(1)
  })

  test("disappears from the list when the member leaves", async () => {
    const { share, requests, admin, decide } = await place()
    await share(API)
    await admin("member", "disable", "gus")
    expect(await requests("ann")).toEqual([])
    expect((await decide("ann", "approve")).status).toBe(404)
  })
})

describe.skipIf(!hasPostgres)("a project that does not exist and one that belongs to others", () => {
  test("are refused with the same status and body on every route that takes a project", async () => {
    const { asGus } = await place()
    const planned = { source: "claude_code", id: "x", digest: "0".repeat(64), chunks: [] }
    const commit = {
      ...{ digest: "0".repeat(64), chunks: [], parent_rev: 0, visibility: "project" },
      head: headNamed("x", [saying(1, "hello")]),
    }
    const routes: [string, string, ((key: string) => unknown)?][] = [
      ["POST", "/v1/push/plan", (project) => ({ project, conversations: [planned] })],
      ["POST", "/v1/push/commit", (project) => ({ ...commit, project })],
      ["DELETE", "/v1/consents/KEY"],
      ["GET", "/v1/projects/KEY/members"],
      ["PUT", "/v1/projects/KEY/members/ann", () => ({ level: "read" })],
      ["PUT", "/v1/projects/KEY/members/nobody", () => ({ level: "read" })],
      ["PUT", "/v1/requests/KEY/gus", () => ({ decision: "approve" })],
      ["PUT", "/v1/requests/KEY/bob", () => ({ decision: "deny" })],
      ["POST", "/v1/tools/list", (project) => ({ project })],
      ["POST", "/v1/tools/search", (project) => ({ query: "x", project })],
    ]
    for (const [method, where, body] of routes) {
      const answer = async (key: string) => {
        const reply = await asGus(method, where.replace("KEY", path(key)), body?.(key))
        return JSON.stringify([reply.status, reply.body]).replaceAll(key, "KEY")
      }
      const [theirs, absent] = [await answer(API), await answer("git.test/acme/apx")]
      expect([method, where, theirs]).toEqual([method, where, absent])
    }
  })

  test("run the same statements, and leave no line in the audit log", async () => {
    const { team, gus } = await place()
    const planned = { source: "claude_code", id: "x", digest: "0".repeat(64), chunks: [] }
    const decider = { viewer: gus, isAdmin: false }
    const calls: ((db: Database, key: string) => Promise<unknown>)[] = [
      (db, key) => withdrawConsent(db, gus, key),
      (db, project) => planPush(db, gus, { project, conversations: [planned] }),
      (db, key) => membersOf(db, decider, key),
      (db, key) => grantAccess(db, decider, { key, name: "bob", level: "read" }),
      (db, key) => decideRequest(db, decider, { key, name: "bob", decision: "approve" }),
    ]
    const lines = () => team.asOwner("select action, target from hub.audit order by id")
    const before = await lines()
    for (const ask of calls) {
      const statements = async (key: string) => {
        const texts: string[] = []
        const as: Database["as"] = (viewer, work) =>
          team.db.as(viewer, (query) =>
            work((text, values) => {
              texts.push(text)
              return query(text, values)
            }),
          )
        await ask({ ...team.db, as }, key).catch(() => {})
        return texts
      }
      const [theirs, absent] = [await statements(API), await statements("git.test/acme/apx")]
      expect(theirs).toEqual(absent)
      expect(theirs.length).toBeGreaterThan(0)
    }
    expect(await lines()).toEqual(before)
  })
})

describe.skipIf(!hasPostgres)("an owner", () => {
  test("grants, changes and removes access, and cannot leave a project without an owner", async () => {
    const { as, level, audited } = await place()
    const grant = (name: string, to: string, who: "ann" | "bob" | "eve" = "ann") =>
      as(who, "PUT", `/v1/projects/${path(API)}/members/${name}`, { level: to })
    expect((await grant("gus", "read")).body).toEqual({ member: "gus", project: API, level: "read" })
    expect(await level("gus")).toBe("read")
    expect((await grant("gus", "none")).status).toBe(200)
    expect(await level("gus")).toBeUndefined()
    expect((await grant("gus", "none")).status).toBe(404)
    expect((await grant("gus", "write", "bob")).status).toBe(404)
    expect((await grant("ann", "read")).body).toMatchObject({ error: { code: "last_owner" } })
    expect(await level("ann")).toBe("own")
    await grant("bob", "own")
    expect((await grant("ann", "read", "bob")).status).toBe(200)
    expect((await grant("ann", "own")).status).toBe(404)
    for (const name of ["nobody", "fay"])
      expect((await grant(name, "read", "bob")).body).toEqual({
        error: { code: "not_found", message: `There is no member ${name} who could be given access.` },
      })
    for (const wrong of ["all", "", 5]) expect((await grant("gus", wrong as string, "bob")).status).toBe(400)
    expect(await audited()).toEqual([
      `ann grant ${API} gus read`,
      `ann grant_end ${API} gus`,
      `ann grant ${API} bob own`,
      `bob grant ${API} ann read`,
    ])
  })

  test("remains if two owners remove each other at once", async () => {
    const { as, team } = await place()
    const grant = (who: "ann" | "bob", name: string, to: string) =>
      as(who, "PUT", `/v1/projects/${path(API)}/members/${name}`, { level: to })
    await grant("ann", "bob", "own")
    await Promise.all([grant("ann", "bob", "none"), grant("bob", "ann", "none")])
    expect(await team.asOwner("select member from hub.project_grant where level = 'own'")).toHaveLength(1)
  })

  test("keeps access that a group gave when removing access that a person gave", async () => {
    const { team, as, level } = await place()
    await team.asOwner(
      "update hub.project_grant set group_level = 'read', person_level = 'write' where level = 'write'",
    )
    const members = async () =>
      ((await as("ann", "GET", `/v1/projects/${path(API)}/members`)).body as { members: object[] }).members
    expect(await members()).toEqual([
      { name: "ann", level: "own" },
      { name: "bob", level: "write", group_level: "read" },
    ])
    expect((await as("ann", "PUT", `/v1/projects/${path(API)}/members/bob`, { level: "none" })).status).toBe(200)
    expect(await level("bob")).toBe("read")
  })

  test("gets suggestions for a typo only from their own projects", async () => {
    const { team, tenant, gus, as } = await place()
    await newProject(team, tenant, "git.test/acme/apo", { own: [gus] })
    const { body } = await as("ann", "PUT", `/v1/projects/${path("git.test/acme/apu")}/members/bob`, { level: "read" })
    expect(body).toEqual({
      error: { code: "not_found", message: `There is no project git.test/acme/apu that you own. Did you mean ${API}?` },
    })
  })
})

describe.skipIf(!hasPostgres)("an admin", () => {
  test("lets others in but not themselves, by the hub's own check and by row-level security", async () => {
    const { team, eve, as, share, decide, level } = await place()
    await share(API)
    expect((await decide("eve", "approve")).status).toBe(200)
    const self = await as("eve", "PUT", `/v1/projects/${path(API)}/members/eve`, { level: "read" })
    expect([self.status, self.body]).toEqual([
      403,
      {
        error: {
          code: "refused",
          message: "Admins cannot grant themselves access to a project. Ask one of its owners.",
        },
      },
    ])
    await as("eve", "PUT", `/v1/consents/${path(API)}`, CONSENT)
    expect((await decide("eve", "approve", API, "eve")).status).toBe(403)
    const insert = `insert into hub.project_grant (tenant, project, member, level) select tenant, id, $1, 'read' from hub.project`
    await expect(team.db.as(eve, (query) => query(insert, [eve.member]))).rejects.toThrow(/row-level security/)
    expect(await level("eve")).toBeUndefined()
  })

  test("needs a token with the scope admin for projects that they do not own", async () => {
    const { team, eve, call } = await place()
    const token = await tokenFor(team, eve, ["push", "read"])
    const grant = await call(token, "PUT", `/v1/projects/${path(API)}/members/gus`, { level: "read" })
    expect(grant.status).toBe(404)
    expect((await call(token, "GET", `/v1/projects/${path(API)}/members`)).status).toBe(404)
  })
})

describe.skipIf(!hasPostgres)("a tenant's rule", () => {
  const rule = "git.test/acme/*"
  test("grants a project at once to members of the tenant who share it, and to nobody in another tenant", async () => {
    const { team, admin, share, level, requests, audited, decide } = await place()
    await share(API)
    const set = await admin("rule", "add", rule)
    expect([set.code, set.stdout]).toEqual([
      0,
      `Members who share a project of ${rule} get write access at once. The hub cannot check whether they have the repository.\n`,
    ])
    expect((await admin("rule", "list")).stdout).toBe(`{"pattern":"${rule}"}\n`)
    expect((await share(API)).status).toBe(204)
    expect(await level("gus")).toBe("write")
    expect(await requests("ann")).toEqual([])
    expect((await decide("ann", "deny")).status).toBe(404)
    expect(await audited()).toEqual([`gus request ${API}`, `eve rule ${rule} write`, `gus grant ${API} gus write rule`])
    const other = await newTenant(team, "bolt")
    const [owner, kim] = [await newMember(team, other, "owner"), await newMember(team, other, "kim")]
    await newProject(team, other, API, { own: [owner] })
    await expect(consentTo(team.db, kim, API, ["said"])).rejects.toMatchObject({ status: 403 })
    expect((await admin("rule", "remove", rule)).code).toBe(0)
    expect((await admin("rule", "list")).stdout).toBe("")
    expect((await admin("rule", "remove", rule)).stderr).toContain("There is no rule")
  })

  test("applies only below its folder, raises nobody above its own level and lowers nobody", async () => {
    const { team, tenant, admin, share, level, ann, gus } = await place()
    await admin("rule", "add", rule)
    for (const key of ["git.test/acme", "git.test/acmeevil/api", "git.test/Acme/api", "x/git.test/acme/api"]) {
      await newProject(team, tenant, key, { own: [ann] })
      expect([key, (await share(key)).status]).toEqual([key, 403])
    }
    await newProject(team, tenant, "git.test/acme/a/b", { own: [ann], read: [gus] })
    expect((await share("git.test/acme/a/b")).status).toBe(204)
    expect(await level("gus", "git.test/acme/a/b")).toBe("write")
    expect(await level("ann", "git.test/acme/a/b")).toBe("own")
    for (const wrong of ["*", "/*", "git.test/acme", "git.test/*/api", "git.test/ac%/*", "a/**", ""])
      expect([wrong, (await admin("rule", "add", wrong)).code]).toEqual([wrong, 2])
  })

  test("cannot be read or set by the hub's role", async () => {
    const { team, gus, eve } = await place()
    for (const viewer of [gus, eve])
      for (const statement of [
        "select * from hub.project_rule",
        "insert into hub.project_rule (tenant, pattern) values (1, 'a/*')",
        "insert into hub.access_request (tenant, project, member) values (1, 1, 1)",
      ])
        await expect(team.db.as(viewer, (query) => query(statement))).rejects.toThrow(/permission denied/)
  })
})

describe.skipIf(!hasPostgres)("an admin", () => {
  test("gives a project that somebody took first to its owner", async () => {
    const { admin, share, level, as, audited } = await place()
    expect((await share(KEY)).status).toBe(204)
    expect((await as("ann", "PUT", `/v1/consents/${path(KEY)}`, CONSENT)).status).toBe(403)
    const given = await admin("project", "owner", KEY, "ann")
    expect([given.code, given.stdout]).toEqual([
      0,
      `ann owns ${KEY}. gus owned it before and can still read and push. To revoke that: \`dex hub admin grant gus ${KEY} --level none\`.\n`,
    ])
    expect([await level("ann", KEY), await level("gus", KEY)]).toEqual(["own", "write"])
    expect((await admin("grant", "gus", KEY, "--level", "none")).code).toBe(0)
    expect(await level("gus", KEY)).toBeUndefined()
    expect((await admin("project", "owner", "git.test/acme/nww", "ann")).stderr).toContain(
      `acme has no project git.test/acme/nww. Did you mean ${KEY}?`,
    )
    expect((await audited()).slice(-3)).toEqual([
      `eve grant ${KEY} gus write`,
      `eve grant ${KEY} ann own`,
      `eve grant_end ${KEY} gus`,
    ])
  })
})

describe.skipIf(!hasPostgres)("an admin's typo", () => {
  test("creates no project: each command refuses an unknown one and suggests similar keys, except with --new", async () => {
    const { admin, team } = await place()
    const typed = "git.test/acme/apii"
    const commands = [
      ["grant", "bob", typed],
      ["group", "grant", "engineers", typed],
      ["service", "add", "ci", typed],
      ["project", "keep", typed, "90"],
      ["project", "owner", typed, "bob"],
    ]
    for (const words of commands) {
      const { code, stderr } = await admin(...words)
      expect([words, code, stderr]).toEqual([
        words,
        2,
        expect.stringContaining(`acme has no project ${typed}. Did you mean ${API}?`),
      ])
    }
    const projects = "select key from hub.project order by key"
    expect(await team.asOwner(projects)).toEqual([{ key: API }])
    expect(await team.asOwner("select name from hub.member where name = 'ci'")).toEqual([])
    for (const words of commands.slice(0, 3)) expect((await admin(...words, "--new")).code).toBe(0)
    expect(await team.asOwner(projects)).toEqual([{ key: API }, { key: typed }])
  })
})

describe.skipIf(!hasPostgres)("requests behind the walls", () => {
  test.each([
    ["with both walls", "", false],
    ["with row-level security alone", REQUEST_SCOPE, false],
    ["with the scope alone", "", true],
  ])("are seen by owners and admins of their tenant, %s", async (_, removed, isOpened) => {
    const team = await newTeam()
    const expected = new Map<Viewer, string[]>()
    for (const slug of ["acme", "bolt"]) {
      const tenant = await newTenant(team, slug)
      const [ann, bob, cid] = [
        await newMember(team, tenant, "ann"),
        await newMember(team, tenant, "bob"),
        await newMember(team, tenant, "cid"),
      ]
      const [eve, fay] = [
        await newMember(team, tenant, "eve", "admin"),
        await newMember(team, tenant, "fay", "auditor"),
      ]
      const keys = [`git.test/${slug}/api`, `git.test/${slug}/web`] as const
      await newProject(team, tenant, keys[0], { own: [ann], write: [bob] })
      await newProject(team, tenant, keys[1], { own: [bob], read: [ann] })
      for (const key of keys)
        await team.asOwner(
          "insert into hub.access_request (tenant, project, member) select tenant, id, $1 from hub.project where key = $2",
          [cid.member, key],
        )
      for (const [viewer, mine] of [
        [ann, [keys[0]]],
        [bob, [keys[1]]],
        [cid, []],
        [eve, keys],
        [fay, []],
      ] as const)
        expected.set(viewer, [...mine])
    }
    if (isOpened)
      for (const table of ["access_request", "project_grant", "project", "member"])
        await run(team.owner, `alter table hub.${table} disable row level security`)
    let replaced = 0
    const db: Database = {
      ...team.db,
      as: (viewer, work) =>
        team.db.as(viewer, (query) =>
          work((text, values) => {
            if (removed !== "" && text.includes(removed)) replaced++
            return query(removed === "" ? text : text.replaceAll(removed, "true"), values)
          }),
        ),
    }
    for (const [viewer, keys] of expected) {
      const seen = (await requestsFor(db, viewer)).map(({ project }) => project).sort()
      expect([viewer.name, seen]).toEqual([viewer.name, keys])
    }
    expect(replaced > 0).toBe(removed !== "")
    const counted = await team.db.asNobody({}, (query) => query("select count(*) as n from hub.access_request"))
    if (!isOpened) expect(counted).toEqual([{ n: 0 }])
  })
})
