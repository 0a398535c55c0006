import { createHash } from "node:crypto"
import { zstdCompressSync } from "node:zlib"
import { describe, expect, test } from "vitest"
import { chunksOf, MAX_CHUNK_PLAIN } from "../../src/hub-client/wire.ts"
import { openTenantHistory } from "../src/store/history.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { pushOver } from "./support/push-over.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { API } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

// A member's chunks do not slow others down: they are unpacked within limits, and checked on other threads.

const packed = (plain: string) => {
  const bytes = Buffer.from(plain)
  return { hash: createHash("sha256").update(bytes).digest("hex"), data: zstdCompressSync(bytes) }
}
const message = (text: string) => JSON.stringify(saying(1, text))
const path = (hash: string) => `/v1/conversations/claude_code/a/chunks/${hash}`

describe.skipIf(!hasPostgres)("a chunk", () => {
  async function hub(env: Record<string, string> = {}) {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, API, { own: [ann] })
    const { url, child, log } = await startHub(hubEnv(team, env))
    const token = await tokenFor(team, ann)
    const put = async ({ hash, data }: { hash: string; data: Buffer }) => {
      const { status, body, headers } = await request(url, token, "PUT", path(hash), data)
      const { code = "" } = (body as { error?: { code: string } }).error ?? {}
      return { outcome: [status, code], after: headers.get("retry-after") }
    }
    return { team, tenant, url, token, put, child, log, sender: { url: () => url, token } }
  }

  test("that unpacks to more than 4 MB, or to far more than was sent, is refused", async () => {
    const { team, put, sender } = await hub()
    const noise = (bytes: number) => createHash("shake256", { outputLength: bytes }).update("noise").digest("base64")
    expect((await put(packed(message(noise(4 << 20))))).outcome).toEqual([413, "too_large"])
    expect((await put(packed(message(" word".repeat(12 << 20))))).outcome).toEqual([413, "too_large"])
    expect((await put(packed(message(" word".repeat(600_000))))).outcome).toEqual([413, "too_large"])
    expect(
      (await put(packed(`${JSON.stringify({ ...saying(1, ""), parts: [] })}\n`.repeat(40_000).trim()))).outcome,
    ).toEqual([413, "too_large"])
    expect(await team.asOwner("select from hub.chunk")).toEqual([])
    // The same text is accepted if a laptop packs it.
    const messages = [
      saying(1, " word".repeat(600_000)),
      saying(2, noise(1 << 20)),
      saying(3, noise(2 << 20)),
      saying(4, "x"),
    ]
    const chunks = [...chunksOf(messages)]
    expect(chunks.every(({ plain_bytes }) => plain_bytes <= MAX_CHUNK_PLAIN)).toBe(true)
    expect(await pushOver(sender, headNamed("a", messages), messages)).toBe(1)
  })

  test("counts by its uncompressed size, both for the quota and for the limit per minute", async () => {
    const { team, tenant, put, sender } = await hub({ DEX_HUB_PUSHED_MB_PER_MINUTE: "1" })
    const messages = [saying(1, "word ".repeat(300_000))]
    expect(await pushOver(sender, headNamed("a", messages), messages)).toBe(1)
    const [row] = await team.asOwner<{ stored_bytes: string }>("select stored_bytes from hub.conversation")
    expect(Number(row!.stored_bytes)).toBe([...chunksOf(messages)][0]!.plain_bytes)
    const { outcome, after } = await put([...chunksOf([saying(1, "x")])][0]!)
    expect(outcome).toEqual([429, "too_many"])
    expect(Number(after)).toBeGreaterThan(0)
    expect(
      await openTenantHistory(team.db, tenant).messages({ owner: "ann", source: "claude_code", id: "a" }),
    ).toHaveLength(1)
  })

  test("that takes too long to check is refused, and the next one is checked", async () => {
    const { put, sender, log } = await hub({ DEX_HUB_CHUNK_SECONDS: "0.000001" })
    expect((await put([...chunksOf([saying(1, "x")])][0]!)).outcome).toEqual([422, "too_slow"])
    expect(log.join("\n")).toContain("too_slow")
    const other = await hub()
    expect(await pushOver(other.sender, headNamed("a", []), [])).toBe(1)
    expect((await put([...chunksOf([saying(2, "y")])][0]!)).outcome).toEqual([422, "too_slow"])
    expect(await pushOver(sender, headNamed("b", []), [])).toBe(1)
  })
})
