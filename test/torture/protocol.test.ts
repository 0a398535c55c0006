import { expect, test } from "vitest"
import { connect, MODERN } from "../mcp/client.ts"
import { dex } from "../support/dex.ts"
import { smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

/** The number of messages in each protocol version. */
const MESSAGES = Number(process.env.DEX_MCP_FUZZ ?? 3_000)
const SEED = Number(process.env.DEX_MCP_SEED ?? 20261115)

/** A generator that never changes, so that a seed always gives the same run. */
function random(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const pick = <T>(of: readonly T[]): T => of[Math.floor(next() * of.length)]!
  return { next, pick }
}

const NAMES = [
  "dex_search",
  "dex_list",
  "dex_get",
  "dex_timeline",
  "dex_stats",
  "dex_guide",
  "dex_why",
  "context_subscribe",
  "suggestion_feedback",
  "dex_none",
  "",
  "__proto__",
]
const METHODS = [
  "tools/call",
  "tools/call",
  "tools/call",
  "tools/list",
  "ping",
  "initialize",
  "server/discover",
  "resources/list",
  "resources/read",
  "prompts/get",
  "x",
  "",
]
const FIELDS = ["query", "ids", "id", "limit", "max_tokens", "expand", "from", "session", "format", "__proto__", "show"]

function messages(seed: number, count: number, more: object): { line: string; id?: string | number }[] {
  const { next, pick } = random(seed)
  const strange = (depth = 0): unknown =>
    pick<() => unknown>([
      () => null,
      () => true,
      () => Math.floor(next() * 1e6) - 5e5,
      () => next() * 1e300,
      () => "",
      () =>
        pick(["token", "current", "1", "all", "7d", "'", '"', "*", "-", "NEAR(", "a:b", "\u0000", "\u202e", "\ud800"]),
      () => "x".repeat(Math.floor(next() * 5_000)),
      () => (depth > 3 ? [] : Array.from({ length: Math.floor(next() * 4) }, () => strange(depth + 1))),
      () => (depth > 3 ? {} : { [pick(FIELDS)]: strange(depth + 1) }),
    ])()
  const input = () =>
    Object.fromEntries(Array.from({ length: Math.floor(next() * 5) }, () => [pick(FIELDS), strange()]))
  return Array.from({ length: count }, (_, i) => {
    const id = pick<string | number>([1_000_000 + i, `s${i}`, `\u2028${i}`])
    const request = (params: unknown) => ({ jsonrpc: "2.0", id, method: pick(METHODS), params })
    switch (Math.floor(next() * 12)) {
      case 0:
        return { line: pick(["{", "nul", '"text"', "[]", "7", "\u0000", "{}{}", '{"id":', "\ufffd", "}"]) }
      case 1:
        return { line: JSON.stringify([request({})]) }
      case 2:
        return { line: JSON.stringify({ ...request(strange()), jsonrpc: pick(["2.0", "1.0", 2, null]) }), id }
      case 3:
        return { line: JSON.stringify({ jsonrpc: "2.0", id: pick([null, {}, [], true]), method: "ping" }) }
      case 4:
        return { line: JSON.stringify({ jsonrpc: "2.0", id, result: strange() }) }
      case 5:
        return {
          line: JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: strange() } }),
        }
      case 6:
        return { line: JSON.stringify(request({ name: strange(), arguments: strange() })), id }
      case 7:
        return { line: JSON.stringify({ ...request({}), method: strange() ?? 1 }), id }
      case 8:
        return { line: JSON.stringify(request({ _meta: { progressToken: strange() }, name: pick(NAMES) })), id }
      case 9: {
        const uri = pick<() => unknown>([strange, () => `dex://conversation/${strange()}`])()
        const params = { uri, cursor: strange(), name: "recall", arguments: { topic: strange() }, ...more }
        return { line: JSON.stringify(request(params)), id }
      }
      default:
        return {
          line: JSON.stringify({
            jsonrpc: "2.0",
            id,
            method: "tools/call",
            params: { name: pick(NAMES), arguments: input(), ...more },
          }),
          id,
        }
    }
  })
}

test.each(["2025-11-25", "2026-07-28"])(
  `after ${MESSAGES} messages of any kind in %s the server still runs and has answered each request once`,
  async (era) => {
    const home = tempDir()
    smallHome(home)
    await dex(home, ["sync"])
    const client = await connect(home, { era })
    await client.call("dex_stats")
    const sent = messages(SEED, MESSAGES, era === "2026-07-28" ? { _meta: MODERN } : {})
    for (let i = 0; i < sent.length; i += 50) {
      for (const { line } of sent.slice(i, i + 50)) client.send(line)
      expect((await client.call("dex_guide")).isError).toBeUndefined()
    }
    const answers = () =>
      Map.groupBy(
        client.lines.map((line) => JSON.parse(line) as { id: unknown }),
        ({ id }) => id,
      )
    const wanted = sent.flatMap(({ id }) => (id === undefined ? [] : [id]))
    const unanswered = () => {
      const given = answers()
      return wanted.filter((id) => !given.has(id)).length
    }
    await expect.poll(unanswered, { interval: 200 }).toBe(0)
    const given = answers()
    expect(wanted.filter((id) => given.get(id)!.length !== 1)).toEqual([])
    expect(wanted.length).toBeGreaterThan(MESSAGES / 2)
    expect(client.child.exitCode).toBeNull()
    client.child.stdin!.end()
    expect(await client.exited).toBe(0)
  },
  60_000 + MESSAGES * 40,
)
