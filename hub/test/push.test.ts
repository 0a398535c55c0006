import { randomInt } from "node:crypto"
import { describe, expect, test } from "vitest"
import { chunksOf, type PlanResponse, type WireChunk, type WireMessage } from "../../src/hub-client/wire.ts"
import { openTenantHistory } from "../src/store/history.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { hasPostgres } from "./support/postgres.ts"
import { pushOver as push } from "./support/push-over.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { API as KEY } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

/** How often the hub is killed at most, and how often each conversation grows in the meantime. */
const KILLS = Number(process.env.DEX_HUB_KILLS ?? 8)
/** Restarting the hub takes most of it. */
const MAX_MS = 300_000 + KILLS * 10_000
const ROUNDS = Number(process.env.DEX_HUB_ROUNDS ?? 4)

describe.skipIf(!hasPostgres)("pushing", () => {
  async function hub() {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, KEY, { own: [ann] })
    const { url, log } = await startHub(hubEnv(team))
    const token = await tokenFor(team, ann)
    return { team, tenant, ann, url, token, log, sender: { url: () => url, token } }
  }

  test("a conversation that grows sends only what is new, and is read back unchanged", async () => {
    const { team, tenant, sender } = await hub()
    const long = (number: number) => saying(number, `${number} ${"word ".repeat(2000)}`)
    const first = Array.from({ length: 40 }, (_, i) => long(i + 1))
    expect(await push(sender, headNamed("a", first), first)).toBe(1)
    const more = [...first, saying(41, "and one more")]
    expect(await push(sender, headNamed("a", more), more)).toBe(2)
    expect(await push(sender, headNamed("a", more), more)).toBe(2)
    const history = openTenantHistory(team.db, tenant)
    const read = await history.messages({ owner: "ann", source: "claude_code", id: "a" })
    expect(read).toEqual(more.map(({ version: _, ...message }) => message))
    const [{ n }] = (await team.asOwner<{ n: string }>("select count(*) as n from hub.chunk")) as [{ n: string }]
    expect(Number(n)).toBe([...chunksOf(more)].length)
  })

  test("a title comes from the last revision, even if a hub wrote it that does not store titles", async () => {
    const { team, tenant, sender } = await hub()
    const ref = { owner: "ann", source: "claude_code" as const, id: "a" }
    const titled = async (text: string) => {
      const title = { text, from: "person" as const }
      await push(sender, headNamed("a", [], { title }), [])
      return openTenantHistory(team.db, tenant).titles([ref, { ...ref, id: "nothing" }])
    }
    expect(await titled("first")).toEqual(["first", ""])
    await team.asOwner("create table kept as select title from hub.conversation")
    expect(await titled("second")).toEqual(["second", ""])
    await team.asOwner("update hub.conversation set title = (select title from kept), title_rev = rev - 1")
    expect(await openTenantHistory(team.db, tenant).titles([ref])).toEqual(["second"])
    await team.asOwner("update hub.conversation set title_rev = rev")
    expect(await openTenantHistory(team.db, tenant).titles([ref])).toEqual(["first"])
  })

  test("clients without a token, or with one that may not push, are refused; members who left are refused at once", async () => {
    const { team, ann, url, token } = await hub()
    const plan = { project: KEY, conversations: [] }
    const status = async (used: string | undefined) => (await request(url, used, "POST", "/v1/push/plan", plan)).status
    expect(await status(token)).toBe(200)
    expect(await status(undefined)).toBe(401)
    expect(await status(`${token}x`)).toBe(401)
    expect(await status(await tokenFor(team, ann, ["read"]))).toBe(403)
    await team.asOwner("update hub.token set revoked_at = now() where scopes = '{read}'")
    await team.asOwner("update hub.member set disabled_at = now()")
    expect(await status(token)).toBe(401)
  })

  test("a push with something that looks like a secret is refused, the rule is named, and no log contains it", async () => {
    const { team, sender, log } = await hub()
    const secret = `ghp_${"A1b2C3d4E5f6G7h8I9".repeat(2)}`
    const messages = [saying(1, `use ${secret} for it`)]
    await expect(push(sender, headNamed("a", messages), messages)).rejects.toThrow(/"code":"secret".*github/)
    const title = headNamed("b", [], { title: { text: `token ${secret}`, from: "person" } })
    await expect(push(sender, title, [])).rejects.toThrow(/"code":"secret"/)
    expect(await team.asOwner("select count(*) as n from hub.chunk")).toEqual([{ n: "0" }])
    expect(log.join("\n")).not.toContain("ghp_")
  })

  test("malformed input is refused with the reason, and the hub keeps working", async () => {
    const { url, token, sender } = await hub()
    const status = async (method: string, path: string, body: unknown) => {
      const { status, body: answer } = await request(url, token, method, path, body)
      return [status, (answer as { error: { code: string } }).error.code]
    }
    const [chunk] = [...chunksOf([saying(1, "x")])] as [WireChunk]
    const path = (hash: string) => `/v1/conversations/claude_code/a/chunks/${hash}`
    expect(await status("PUT", path(chunk.hash), Buffer.from("not zstd"))).toEqual([400, "invalid"])
    expect(await status("PUT", path("0".repeat(64)), chunk.data)).toEqual([400, "invalid"])
    expect(await status("PUT", path("zz"), chunk.data)).toEqual([400, "invalid"])
    expect(await status("PUT", path(chunk.hash), Buffer.alloc(9 << 20))).toEqual([413, "too_large"])
    expect(await status("PUT", path(chunk.hash), chunk.data)).toEqual([409, "conflict"])
    const nul = { source: "claude_code", id: "a\0b", digest: "0".repeat(64), chunks: [] }
    expect(await status("POST", "/v1/push/plan", { project: KEY, conversations: [nul] })).toEqual([400, "invalid"])
    expect(await status("POST", "/v1/push/plan", { project: 5 })).toEqual([400, "invalid"])
    expect(await status("POST", "/v1/push/plan", "{")).toEqual([400, "invalid"])
    expect(await status("GET", "/v1/nothing", undefined)).toEqual([404, "not_found"])
    const [bad] = [...chunksOf([{ number: 1, version: 1 } as WireMessage])] as [WireChunk]
    expect(await status("PUT", path(bad.hash), bad.data)).toEqual([400, "invalid"])
    expect(await push(sender, headNamed("a", []), [])).toBe(1)
  })

  test("a forgotten conversation is gone for all readers, and is not accepted again", async () => {
    const { team, tenant, url, token, sender } = await hub()
    const messages = [saying(1, "quokka")]
    await push(sender, headNamed("a", messages), messages)
    const { body } = await request(url, token, "DELETE", "/v1/conversations/claude_code/a")
    expect(body).toMatchObject({ forgotten: 1, receipt: { conversations: 1, why: "person", by: "ann" } })
    await expect(push(sender, headNamed("a", messages), messages)).rejects.toThrow(/gone/)
    const history = openTenantHistory(team.db, tenant)
    expect((await history.changes(undefined, 10)).changes.map(({ deleted }) => deleted)).toEqual([true])
  })

  test("when a member stops sharing a project, earlier pushes stay, and new ones are refused", async () => {
    const { team, tenant, url } = await hub()
    const bob = await newMember(team, tenant, "bob")
    const token = await tokenFor(team, bob)
    const plan = async (project: string) => {
      const conversations = [{ source: "codex", id: "x", digest: "0".repeat(64), chunks: [] }]
      const { body } = await request(url, token, "POST", "/v1/push/plan", { project, conversations })
      return (body as PlanResponse).conversations[0]!.state
    }
    const key = "git.test/bob/own"
    const consent = (method: string, to: string, what = "said") =>
      request(url, token, method, `/v1/consents/${encodeURIComponent(to)}`, { what: [what] })
    expect((await consent("PUT", key, "everything")).status).toBe(400)
    expect((await consent("PUT", key)).status).toBe(204)
    expect(await plan(key)).toBe("send")
    // It is ann's, and bob was granted nothing.
    expect((await consent("PUT", KEY)).status).toBe(403)
    expect((await consent("DELETE", key)).status).toBe(204)
    expect(await plan(key)).toBe("refused")
    const me = await request(url, token, "GET", "/v1/me")
    expect(me.body).toMatchObject({ member: { name: "bob" }, projects: [{ key, level: "own", shared: false }] })
  })

  test(
    "20 clients push at once while the hub is killed and answers are lost: nothing is lost, nothing counts twice",
    async () => {
      const team = await newTeam()
      const tenant = await newTenant(team)
      const members = await Promise.all(Array.from({ length: 20 }, (_, i) => newMember(team, tenant, `m${i}`)))
      await newProject(team, tenant, KEY, { own: members })
      let hub = await startHub(hubEnv(team))
      const env = hubEnv(team, { DEX_HUB_PORT: new URL(hub.url).port })
      let isPushing = true
      let killed = 0
      let aborted = 0
      const killing = (async () => {
        while (isPushing && killed < KILLS) {
          await new Promise((resolve) => setTimeout(resolve, randomInt(100, 600)))
          await hub.kill()
          killed++
          hub = await startHub(env)
        }
      })()
      const textOf = (name: string, conversation: number, round: number) => `${name} ${conversation} in round ${round}`
      const pusher = async (member: (typeof members)[number]) => {
        const token = await tokenFor(team, member)
        for (let round = 1; round <= ROUNDS; round++)
          for (let one = 0; one < 3; one++) {
            const messages = Array.from({ length: round }, (_, i) => saying(i + 1, textOf(member.name, one, i + 1)))
            for (let isKept = false; !isKept; ) {
              // A laptop that is closed in the middle, or an answer that never arrives.
              const signal = () => (randomInt(10) === 0 ? AbortSignal.timeout(randomInt(1, 30)) : undefined)
              try {
                const rev = await push({ url: () => hub.url, token, signal }, headNamed(`c${one}`, messages), messages)
                expect(rev).toBe(round)
                isKept = true
              } catch (error) {
                if (error instanceof Error && error.name === "AssertionError") throw error
                aborted++
              }
            }
          }
      }
      await Promise.all(members.map(pusher))
      isPushing = false
      await killing
      const history = openTenantHistory(team.db, tenant)
      const { changes } = await history.changes(undefined, 1000)
      expect(changes).toHaveLength(60)
      for (const { name } of members)
        for (let one = 0; one < 3; one++) {
          const read = await history.messages({ owner: name, source: "claude_code", id: `c${one}` })
          const texts = read.map(({ parts }) => parts[0]!.text)
          expect(texts).toEqual(Array.from({ length: ROUNDS }, (_, i) => textOf(name, one, i + 1)))
        }
      // Each revision was accepted once: the feed has one entry for each, and no gap.
      const seqs = await team.asOwner<{ seq: string }>("select seq from hub.change order by seq")
      expect(seqs.map(({ seq }) => Number(seq))).toEqual(Array.from({ length: 60 * ROUNDS }, (_, i) => i + 1))
      expect(await team.asOwner("select seq from hub.feed")).toEqual([{ seq: String(60 * ROUNDS) }])
      console.log(`${killed} kills, ${aborted} tries failed, ${60 * ROUNDS} revisions`)
    },
    MAX_MS,
  )
})
