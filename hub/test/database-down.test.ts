import { describe, expect, test } from "vitest"
import { openHub } from "../../src/hub-client/client.ts"
import { hasPostgres } from "./support/postgres.ts"
import { asOperator, hubEnv, request, startHub } from "./support/server.ts"
import { newTeam } from "./support/team.ts"

/** Nothing listens there. */
const DOWN = "postgresql://postgres:secret@127.0.0.1:1/hub"

describe.skipIf(!hasPostgres)("while PostgreSQL is down", () => {
  test("every route that needs it answers 503 with a code and what to do, and dex shows that", async () => {
    const team = await newTeam()
    const hub = await startHub(hubEnv(team, { DEX_HUB_DATABASE_URL: DOWN, DEX_HUB_INDEX_URL: DOWN }))
    for (const [method, path] of [
      ["GET", "/v1/me"],
      ["POST", "/v1/tools/search"],
      ["POST", "/mcp"],
      ["POST", "/v1/login/invitation"],
    ] as const) {
      const { status, body, headers } = await request(
        hub.url,
        "dexh_x",
        method,
        path,
        method === "POST" ? {} : undefined,
      )
      expect([path, status, body]).toEqual([
        path,
        503,
        { error: { code: "database", message: expect.stringMatching(/database does not answer.*Try again/) } },
      ])
      expect(headers.get("retry-after")).toMatch(/^\d+$/)
    }
    const client = openHub({ address: hub.url, token: "dexh_x", maxTries: 1, consequence: "Nothing was changed." })
    await expect(client.me()).rejects.toThrow(/cannot answer now \(503: The hub's database does not answer/)
    client.close()
  })

  test("an operator's command says which address does not answer, without its password", async () => {
    const team = await newTeam()
    const env = hubEnv(team, { DEX_HUB_OWNER_URL: DOWN })
    for (const args of [["init"], ["migrate"]]) {
      const output = await asOperator(env, args, 1)
      expect(output).toBe(
        "PostgreSQL does not answer (ECONNREFUSED). Check that it is running, and that DEX_HUB_OWNER_URL and the other addresses are right. `dex-hub check` shows more.\n",
      )
    }
  })
})
