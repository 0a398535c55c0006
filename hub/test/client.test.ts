import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as after } from "node:timers/promises"
import { describe, expect, test } from "vitest"
import { unpackChunk } from "../../src/hub-client/wire.ts"
import { DEX, dex, environment } from "../../test/support/dex.ts"
import { claudeSession } from "../../test/support/home.ts"
import { tempDir } from "../../test/support/temp.ts"
import { openTenantHistory } from "../src/store/history.ts"
import { scanAgain } from "../src/store/late-secrets.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, startHub, tokenFor } from "./support/server.ts"
import { newMember, newTeam, newTenant } from "./support/team.ts"

const KEY = "git.test/acme/api"
const TORTURE = process.env.DEX_TORTURE === "1"
const SECRET = ["ghp", "Zx8Qm4Lr7Tn2Vb6Kc1Wd9Sf5Hg3Jy0PaQw7E"].join("_")
const idOf = (n: number) => `${String(n).padStart(8, "0")}-1111-4222-8333-444444444444`

/** The laptop's program with the hub's program, over PostgreSQL. */
async function pair() {
  const team = await newTeam()
  const tenant = await newTenant(team)
  const ann = await newMember(team, tenant, "ann")
  const hub = await startHub(hubEnv(team))
  const token = await tokenFor(team, ann)
  const home = tempDir()
  const project = join(home, "code", "api")
  mkdirSync(project, { recursive: true })
  const session = (n: number, prompts: string[]) =>
    claudeSession(home, {
      id: idOf(n),
      cwd: project,
      start: "2026-10-02T10:00:00Z",
      turns: prompts.map((user) => ({ user, assistant: `I read ${project}/src/a.ts` })),
    })
  const json = async (args: string[], input = "") => {
    const { code, stdout, stderr } = await dex(home, [...args, "--json"], {}, DEX, input, project)
    if (code !== 0) throw new Error(`dex ${args.join(" ")}: ${code} ${stderr}`)
    return JSON.parse(stdout.trim().split("\n").at(-1)!)
  }
  const history = openTenantHistory(team.db, tenant)
  /** The person's words on the hub, by conversation. */
  const prompts = async (n: number) =>
    (await history.messages({ owner: "ann", source: "claude_code", id: idOf(n) }))
      .filter(({ role }) => role === "user")
      .map(({ parts }) => parts[0]!.text)
  return { team, hub, token, home, project, session, json, history, prompts }
}

describe.skipIf(!hasPostgres)("a laptop and a hub", () => {
  test("a shared conversation can be read on the hub unchanged, additions follow, and what is deleted on the laptop is deleted there", async () => {
    const { team, hub, token, home, session, json, history, prompts } = await pair()
    session(1, [`walrus ${SECRET}`, "and more"])
    session(2, ["penguin"])
    await json(["sync"])
    expect(await json(["hub", "login", hub.url, "--token-stdin"], token)).toMatchObject({ member: "ann" })
    expect(await json(["hub", "share", "--name", KEY, "--yes"])).toMatchObject({ pushed: { sent: 2, refused: 0 } })
    expect(await prompts(1)).toEqual(["walrus [REDACTED:github-token]", "and more"])
    const all = JSON.stringify(await history.messages({ owner: "ann", source: "claude_code", id: idOf(1) }))
    expect(all).toContain("~/code/api/src/a.ts")
    expect(all).not.toContain(home)
    // A newer rule finds something: the author is notified, and their next push ends the quarantine.
    const secretRulesIn = (values: readonly object[]) =>
      JSON.stringify(values).includes("penguin") ? ["new-rule"] : []
    const secretRulesInChunk = async (data: Uint8Array) => secretRulesIn(unpackChunk(data).messages)
    await scanAgain(team.db, { version: 99, secretRulesIn, secretRulesInChunk })
    const hidden = { id: `claude_code:${idOf(2)}`, rules: ["new-rule"] }
    expect((await json(["hub", "status"])).quarantined).toEqual([expect.objectContaining(hidden)])
    session(2, ["penguin", "grew"])
    await json(["sync"])
    await expect.poll(() => prompts(2)).toEqual(["penguin", "grew"])
    await json(["forget", idOf(1), "--yes"])
    await expect.poll(() => prompts(1)).toEqual([])
    // It was deleted on the hub, which does not accept it again.
    expect(await json(["hub", "hold", idOf(2), "--forget"])).toMatchObject({ pushed: { removed: 1 } })
    await json(["hub", "hold", idOf(2), "--off"])
    expect(await json(["hub", "push"])).toMatchObject({ pushed: { sent: 0, refused: 0 } })
    expect(await prompts(2)).toEqual([])
    const status = await json(["hub", "status"])
    expect(status.shared[0]).toMatchObject({ sent: 0, deleted: 1 })
    const receipt = { conversations: 1, why: "person", by: "ann" }
    expect(status.receipts).toEqual([expect.objectContaining(receipt), expect.objectContaining(receipt)])
    expect(JSON.stringify(status.receipts)).not.toContain(idOf(1))
    const [{ n }] = (await team.asOwner("select count(*)::int as n from hub.conversation")) as [{ n: number }]
    expect(n).toBe(0)
    expect(JSON.stringify(hub.log)).not.toContain("walrus")
  })

  test("a client that is killed at any moment loses nothing and sends nothing twice", async () => {
    const { team, hub, token, home, project, session, json, history, prompts } = await pair()
    const want = new Map<number, string[]>()
    session(0, ["first"])
    want.set(0, ["first"])
    await json(["sync"])
    await json(["hub", "login", hub.url, "--token-stdin"], token)
    await json(["hub", "share", "--name", KEY, "--yes"])
    let killed = 0
    // A fast machine ends a push before many of these moments, so more are tried.
    for (let round = 1; round <= (TORTURE ? 100 : 8) || (killed <= 2 && round <= 40); round++) {
      for (let i = 0; i < 6; i++) {
        const n = (round * 5 + i) % 23
        want.set(n, [...(want.get(n) ?? []), `round ${round} ${"word ".repeat(500)}`])
        session(n, want.get(n)!)
      }
      // The sync starts a push in the background, so the killed process may be either.
      await json(["sync"])
      const child = spawn(process.execPath, [DEX, "hub", "push"], {
        env: environment(home, {}),
        cwd: project,
        stdio: "ignore",
      })
      const ended = once(child, "exit")
      await Promise.race([ended, after(20 * 35 ** Math.random())]) // 20 to 700 ms, early ones as often as late ones
      if (child.exitCode === null && child.kill("SIGKILL")) killed++
      await ended
    }
    await expect
      .poll(async () => {
        const { pushed } = await json(["hub", "push"])
        return pushed.complete && pushed.sent === 0
      })
      .toBe(true)
    expect(killed).toBeGreaterThan(2)
    for (const [n, texts] of want) expect(await prompts(n)).toEqual(texts.map((text) => text.trim()))
    const rows = await team.asOwner<{ rev: string }>("select rev from hub.conversation")
    expect(rows.length).toBe(want.size)
    const feed: string[] = []
    for (let token: string | undefined; ; ) {
      const page = await history.changes(token, 100)
      for (const { ref } of page.changes) feed.push(ref!.id)
      token = page.token
      if (!page.more) break
    }
    expect(feed.sort()).toEqual([...want.keys()].map(idOf).sort())
    expect((await json(["hub", "status"])).shared[0]).toMatchObject({ sent: want.size, refused: 0 })
  })
})
