import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { join } from "node:path"
import { zstdCompressSync } from "node:zlib"
import { describe, expect, test } from "vitest"
import { chunksOf, pushDigest, type WireHead, type WireMessage } from "../../src/hub-client/wire.ts"
import { commitSchema } from "../src/push/incoming.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { pushOver } from "./support/push-over.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { API } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

// A client's numbers are limited, and what can be counted is counted.

const MAIN = join(import.meta.dirname, "../src/main.ts")
/** Numbers in JSON: NaN cannot be written, and 1e400 is read as Infinity. */
const WRONG = ["-1", "-5", "0.5", "2147483648", "3e9", "9007199254740992", "NaN", "1e308", "1e400", '"7"', "null"]
/** Milliseconds and versions exceed 2^31. */
const LARGE = ["2147483648", "3e9"]

type Shape = { type: string; properties?: Record<string, Shape> }
function numbersIn({ type, properties = {} }: Shape, path: string[] = []): string[][] {
  if (type === "integer" || type === "number") return [path]
  return Object.entries(properties).flatMap(([name, inner]) => numbersIn(inner, [...path, name]))
}

/** JSON in which one value is written exactly like this. */
function withNumber(value: object, path: string[], literal: string): string {
  const copy = structuredClone(value) as Record<string, unknown>
  let at = copy
  for (const name of path.slice(0, -1)) {
    at[name] ??= {}
    at = at[name] as Record<string, unknown>
  }
  at[path.at(-1)!] = "here goes it"
  return JSON.stringify(copy).replace('"here goes it"', literal)
}

describe.skipIf(!hasPostgres)("a number that a client sends", () => {
  async function hub() {
    const team = await newTeam()
    const tenant = await newTenant(team, "acme")
    const ann = await newMember(team, tenant, "ann", "admin")
    await newProject(team, tenant, API, { own: [ann] })
    const env = hubEnv(team)
    const { url, log } = await startHub(env)
    const token = await tokenFor(team, ann, ["push", "read", "admin"])
    const operator = (...args: string[]) =>
      new Promise<{ code: number; out: string }>((resolve) =>
        execFile(
          process.execPath,
          [MAIN, ...args],
          { env: { ...env, DEX_HUB_OWNER_URL: team.owner } },
          (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, out: `${stdout}${stderr}` }),
        ),
      )
    const send = async (method: string, path: string, body: string | Buffer) =>
      (await request(url, token, method, path, typeof body === "string" ? Buffer.from(body) : body)).status
    return { team, url, token, log, operator, send, sender: { url: () => url, token } }
  }

  test("is refused outside its limits, never fails, and leaves nothing behind", async () => {
    const { team, send, sender, url, token, log } = await hub()
    const messages = [saying(1, "quokka")]
    expect(await pushOver(sender, headNamed("kept", messages), messages)).toBe(1)
    const rows = () => team.asOwner("select id, rev, message_count from hub.conversation where rev > 0")
    const before = await rows()
    const chunks = [...chunksOf(messages)]
    const hashes = chunks.map(({ hash }) => hash)
    const head = { ...headNamed("a", messages), usage: { input_tokens: 1, output_tokens: 2 } } as unknown as WireHead
    const digest = pushDigest(head, "project", hashes)
    const plan = { project: API, conversations: [{ source: head.source, id: "a", digest, chunks: hashes }] }
    await request(url, token, "POST", "/v1/push/plan", plan)
    await request(url, token, "PUT", `/v1/conversations/claude_code/a/chunks/${hashes[0]}`, chunks[0]!.data)
    const commit = { project: API, digest, chunks: hashes, parent_rev: 0, visibility: "project", head }
    const fields = [
      ...numbersIn(commitSchema as Shape),
      ["head", "usage", "input_tokens"],
      ["head", "usage", "cost", "total"],
    ]
    expect(fields.length).toBeGreaterThanOrEqual(10)
    const isOf = (names: string[], path: string[]) => names.includes(path.at(-1)!)
    for (const path of fields)
      for (const literal of WRONG) {
        if (isOf(["started_at", "ended_at"], path) && LARGE.includes(literal)) continue
        if (path.includes("usage") && ["0.5", '"7"', "null", ...LARGE, "9007199254740992"].includes(literal)) continue
        const status = await send("POST", "/v1/push/commit", withNumber(commit, path, literal))
        expect([400, 422], `${path.join(".")} ${literal}`).toContain(status)
      }
    // In messages, and in the changes that they report.
    const hunk = { path: "a.ts", old_start: 1, old_lines: 0, new_start: 1, new_lines: 1, lines: ["+x"] }
    const result = { type: "tool_result", text: "ok", origin: "local_tool", is_error: false, hunks: [hunk] }
    const message = { ...saying(1, ""), at: 1, parts: [result] } as unknown as WireMessage
    const paths = [
      ...["number", "version", "at"].map((name) => [name]),
      ...["old_start", "old_lines", "new_start", "new_lines"].map((name) => ["parts", "0", "hunks", "0", name]),
      ["usage", "input_tokens"],
    ]
    for (const path of paths)
      for (const literal of WRONG) {
        const isLarge = isOf(["at", "version"], path) && LARGE.includes(literal)
        const isCharge = path[0] === "usage" && ["-1", "-5", "0.5", '"7"', "null", ...LARGE].includes(literal)
        if (isLarge || isCharge || (isOf(["at"], path) && literal === "null")) continue
        const { hash, data } = packed(withNumber(message, path, literal))
        const status = await send("PUT", `/v1/conversations/claude_code/a/chunks/${hash}`, data)
        expect([400, 422], `${path.join(".")} ${literal}`).toContain(status)
      }
    for (const literal of WRONG) {
      const glass = `{"ref": "ann/claude_code:kept", "reason": "incident 42", "hours": ${literal}}`
      if (literal !== "0.5" && literal !== "null")
        expect([400, 422], `hours ${literal}`).toContain(await send("POST", "/v1/break-glass", glass))
      for (const name of ["limit", "offset"]) {
        const list = await send("POST", "/v1/tools/list", `{"${name}": ${literal}}`)
        expect(list, `${name} ${literal}`).toBeLessThan(500)
        const search = await send("POST", "/v1/tools/search", `{"query": "quokka", "${name}": ${literal}}`)
        expect(search, `${name} ${literal}`).toBeLessThan(500)
      }
      expect((await request(url, token, "GET", `/v1/audit?limit=${encodeURIComponent(literal)}`)).status).toBe(400)
      expect((await request(url, token, "GET", `/v1/audit?before=${encodeURIComponent(literal)}`)).status).toBeLessThan(
        500,
      )
      expect((await request(url, token, "DELETE", `/v1/tokens/${encodeURIComponent(literal)}`)).status).toBeLessThan(
        500,
      )
    }
    expect(await rows()).toEqual(before)
    expect(await team.asOwner("select from hub.chunk")).toHaveLength(2)
    expect(log.filter((line) => line.includes('"level":"error"'))).toEqual([])
  })

  test("is replaced by the hub's own count of the messages", async () => {
    const { team, sender } = await hub()
    const messages = [saying(1, "a"), saying(2, "b", { copied: true }), saying(3, "c", { superseded: true })]
    await pushOver(sender, headNamed("a", messages, { message_count: 900_000, copied_count: 7 }), messages)
    expect(await team.asOwner("select message_count, copied_count from hub.conversation")).toEqual([
      { message_count: 2, copied_count: 1 },
    ])
  })

  test("that an earlier hub trusted is found by check, corrected by recount, and breaks no list", async () => {
    const { team, sender, operator } = await hub()
    for (const id of ["a", "b", "c"]) await pushOver(sender, headNamed(id, [saying(1, id)]), [saying(1, id)])
    await team.asOwner("update hub.conversation set message_count = 2147483647 where native_id in ('a', 'b')")
    const checked = await operator("check")
    expect(checked.code).toBe(1)
    expect(checked.out).toMatch(
      /PROBLEM {2}2 conversations of tenant \d+ have impossible counts\. Run: dex-hub recount/,
    )
    expect(await operator("recount")).toMatchObject({ code: 0, out: expect.stringContaining("2 conversations") })
    expect(await team.asOwner("select sum(message_count)::int as n from hub.conversation")).toEqual([{ n: 3 }])
    expect((await operator("check")).out).toContain("ok       the counts of conversations are plausible")
  })
})

function packed(line: string) {
  const plain = Buffer.from(line)
  return { hash: createHash("sha256").update(plain).digest("hex"), data: zstdCompressSync(plain) }
}
