import { describe, expect, test } from "vitest"
import { chunksOf, pushDigest } from "../../src/hub-client/wire.ts"
import { conversation, textMessage, unit } from "../../test/support/conversations.ts"
import { METRIC_HELP } from "../src/metrics.ts"
import { headOf, newLaptop, wireMessages } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const CANARY = "quokkatronics"
const API = `git.test/${CANARY}/api`
const SECRET = ["ghp", "Zx8Qm4Lr7Tn2Vb6Kc1Wd9Sf5Hg3Jy0PaQw7E"].join("_")

describe.skipIf(!hasPostgres)("metrics and logs", () => {
  test("report what was done and how long it took, and nothing that anybody sent", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, API, { own: [ann] })
    const hub = await startHub(hubEnv(team, { DEX_HUB_METRICS_PORT: "0" }))
    const token = await tokenFor(team, ann)
    const ask = (method: string, path: string, body?: unknown, by = token) => request(hub.url, by, method, path, body)
    const metricsAt = JSON.parse(hub.log.find((line) => line.includes('"metrics"'))!) as { port: number }
    const scrape = async () => (await fetch(`http://127.0.0.1:${metricsAt.port}/metrics`)).text()

    const push = async (id: string, text: string) => {
      const laptop = newLaptop()
      const title = { text: CANARY, from: "person" as const }
      await laptop.writeUnit(unit(id, [conversation(id, [textMessage("a", text)], { title })]))
      const ref = { source: "claude_code", id }
      const head = headOf((await laptop.conversation(ref))!)
      const chunks = [...chunksOf(await wireMessages(laptop, ref))]
      const hashes = chunks.map(({ hash }) => hash)
      const digest = pushDigest(head, "project", hashes)
      await ask("POST", "/v1/push/plan", { project: API, conversations: [{ ...ref, digest, chunks: hashes }] })
      for (const { hash, data } of chunks) {
        const kept = await ask("PUT", `/v1/conversations/claude_code/${id}/chunks/${hash}`, data)
        if (kept.status !== 204) return kept.status
      }
      const commit = { project: API, digest, chunks: hashes, parent_rev: 0, visibility: "project", head }
      return (await ask("POST", "/v1/push/commit", commit)).status
    }
    expect(await push(`${CANARY}-1`, `the ${CANARY} sleeps`)).toBe(200)
    expect(await push(`${CANARY}-2`, `${CANARY} ${SECRET}`)).toBe(422)
    await expect.poll(scrape).toContain(`hub_index_lag_changes{tenant="${tenant}"} 0`)
    expect((await ask("POST", "/v1/tools/search", { query: CANARY })).status).toBe(200)
    await ask("POST", `/v1/tools/${CANARY}`, {})
    await ask("POST", "/v1/tools/search", { query: 5, [CANARY]: CANARY })
    await ask("GET", `/v1/${CANARY}?q=${CANARY}`)
    await ask("GET", `/${CANARY}`)
    await ask("PUT", `/v1/consents/${CANARY}`, { what: [CANARY] })
    await ask("GET", "/v1/me", undefined, `dexh_${CANARY}`)
    await ask("POST", "/mcp", { jsonrpc: "2.0", id: 1, method: CANARY, params: { [CANARY]: CANARY } })

    const text = await scrape()
    expect(text).toContain('hub_requests_total{route="/v1/push/commit",status="200"} 1\n')
    const helped = [...text.matchAll(/^# HELP (\w+) (.*)$/gm)].map(([, name, help]) => [name, help])
    expect(helped).toEqual(helped.map(([name]) => [name, METRIC_HELP[name!]]))
    expect(helped.map(([name]) => name)).toEqual([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name))
    expect(text).toContain("hub_pushes_total 1\n")
    expect(text).toContain("hub_pushed_messages_total 1\n")
    expect(text).toContain('hub_refused_total{rule="github-token"} 1\n')
    expect(text).toContain("hub_second_wall_drops_total 0\n")
    expect(text).toContain('hub_request_seconds_count{route="/v1/push/plan"} 2\n')
    expect(text).toMatch(/hub_postgres_connections\{pool="app",state="open"\} [1-9]/)
    expect(text).toMatch(/hub_search_seconds_count [1-9]/)
    const lines = () => hub.log.map((line) => JSON.parse(line) as { route?: string; status?: number })
    await expect.poll(() => lines().some(({ route }) => route === "/mcp")).toBe(true)
    expect(lines()).toContainEqual(
      expect.objectContaining({ route: "/v1/push/commit", status: 200, tenant, member: ann.member }),
    )
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for (const [sent, expected] of [
      [traceparent, "4bf92f3577b34da6a3ce929d0e0e4736"],
      [`00-${CANARY}`, /^[0-9a-f]{32}$/],
      [undefined, /^[0-9a-f]{32}$/],
    ] as const) {
      const { headers } = await fetch(`${hub.url}/v1/me`, { headers: sent === undefined ? {} : { traceparent: sent } })
      const id = headers.get("x-request-id")!
      expect(id).toEqual(typeof expected === "string" ? expected : expect.stringMatching(expected))
      await expect.poll(() => lines()).toContainEqual(expect.objectContaining({ status: 401, request: id }))
    }
    // Not on the public port.
    expect((await ask("GET", "/metrics")).status).toBe(404)
    for (const canary of [CANARY, SECRET, token, token.slice(5)]) {
      expect(text).not.toContain(canary)
      expect(hub.log.join("\n")).not.toContain(canary)
    }
  })
})
