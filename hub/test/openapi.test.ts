import { spawn } from "node:child_process"
import { once } from "node:events"
import { text } from "node:stream/consumers"
import { describe, expect, test } from "vitest"
import { adminRoutes } from "../../src/hub-client/admin-routes.ts"
import { tempDir } from "../../test/support/temp.ts"
import { redeemOperatorCode } from "../src/store/operators.ts"
import { hubWithPeople } from "./support/people.ts"
import { hasPostgres } from "./support/postgres.ts"
import { tokenFor } from "./support/server.ts"
import { newMember } from "./support/team.ts"

/** The program `schemathesis`, from PyPI. Without it, the document is only read. */
const SCHEMATHESIS = process.env.DEX_SCHEMATHESIS
if (!SCHEMATHESIS)
  console.warn("DEX_SCHEMATHESIS is not set: the hub is not asked everything that its document allows.")

describe.skipIf(!hasPostgres)("the OpenAPI document", () => {
  test("describes every command of administration, and is given to anybody", async () => {
    const { call } = await hubWithPeople()
    const { status, body } = await call(undefined, "GET", "/v1/openapi.json")
    const { openapi, paths } = body as {
      openapi: string
      paths: Record<string, Record<string, { operationId: string }>>
    }
    expect([status, openapi]).toEqual([200, "3.1.0"])
    const ids = Object.values(paths).flatMap((one) => Object.values(one).map(({ operationId }) => operationId))
    const expected = [...Object.keys(adminRoutes).map((name) => name.replaceAll(" ", "-")), "admin-login"]
    expect(ids.sort()).toEqual(expected.sort())
    for (const broken of ["null", "5", "[]", '{"code":"\\u0000"}'])
      for (const path of ["/v1/admin/login", "/v1/login/invitation"])
        expect([broken, (await call(undefined, "POST", path, Buffer.from(broken))).status]).toEqual([broken, 403])
  })

  test.skipIf(!SCHEMATHESIS)(
    "is what each role gets: no 5xx, and no answer that it does not describe",
    async () => {
      const { team, tenant, eve, tokens, operator, hub } = await hubWithPeople()
      const code = (await operator("operator", "add", "otto")).stdout.split("\n")[0]!
      const service = await newMember(team, tenant, "robot", "service")
      // Far away from the numbers that are tried, so that an admin does not end their own token.
      await team.asOwner("alter table hub.token alter column id restart with 900000000")
      const all: Record<string, string> = {
        nobody: "dexh_nobody",
        service: await tokenFor(team, service, ["read"]),
        ...{ member: tokens.ann, auditor: tokens.fay },
        operator: (await redeemOperatorCode(team.db, code)).token,
        admin: await tokenFor(team, eve, ["push", "read", "admin"]),
      }
      for (const [who, token] of Object.entries(all)) {
        const checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
        const child = spawn(
          SCHEMATHESIS!,
          [
            "run",
            `${hub.url}/v1/openapi.json`,
            "-H",
            `Authorization: Bearer ${token}`,
            "--checks",
            checks,
            "--max-examples",
            "10",
            "--seed",
            "7",
            "--phases",
            "examples,coverage,fuzzing",
            "--suppress-health-check",
            "all",
            "--generation-database",
            "none",
          ],
          { cwd: tempDir(), env: { PATH: process.env.PATH, NO_COLOR: "1" } },
        )
        const ended = once(child, "exit")
        const [out] = await Promise.all([text(child.stdout), text(child.stderr)])
        const [status] = (await ended) as [number]
        console.log(
          who,
          out
            .split("\n")
            .filter((line) => /generated|Operations|passed|cases/i.test(line))
            .join("; "),
        )
        if (status !== 0) throw new Error(`${who}: ${out.slice(-6000)}`)
      }
      expect(hub.log.filter((line) => line.includes('"level":"error"'))).toEqual([])
    },
    900_000,
  )
})
