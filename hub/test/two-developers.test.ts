import { execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { DEX, dex } from "../../test/support/dex.ts"
import { claudeSession } from "../../test/support/home.ts"
import { tempDir } from "../../test/support/temp.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, startHub, tokenFor } from "./support/server.ts"
import { newMember, newTeam, newTenant } from "./support/team.ts"

const KEY = "github.com/acme/api"

/** A laptop with a checkout of the repository, and one conversation in it. */
async function developer(
  id: string,
  prompt: string,
  assistant: string,
  remotes: Record<string, string> = { origin: "git@github.com:acme/api.git" },
) {
  const home = tempDir()
  const checkout = join(home, "code", "api")
  mkdirSync(checkout, { recursive: true })
  execFileSync("git", ["init", "-q", checkout])
  for (const [name, address] of Object.entries(remotes))
    execFileSync("git", ["-C", checkout, "remote", "add", name, address])
  claudeSession(home, { id, cwd: checkout, start: "2026-10-02T10:00:00Z", turns: [{ user: prompt, assistant }] })
  const run = (args: string[], input?: string) => dex(home, args, {}, DEX, input, checkout)
  expect((await run(["sync"])).code).toBe(0)
  return run
}

describe.skipIf(!hasPostgres)("two developers of one repository", () => {
  test("are offered one name on the hub, if one of them has it as a second remote", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    const hub = await startHub(hubEnv(team))
    const upstream = "https://github.com/acme/api"
    const inUpstream = await developer("11111111-1111-4222-8333-444444444444", "why", "A mutex.")
    const inFork = await developer("22222222-1111-4222-8333-444444444444", "where", "In Redis.", {
      origin: "https://github.com/ann/api",
      upstream,
    })
    for (const run of [inUpstream, inFork])
      expect((await run(["hub", "login", hub.url, "--token-stdin"], await tokenFor(team, ann))).code).toBe(0)
    expect((await inUpstream(["hub", "share", "--yes"])).code).toBe(0)
    const { stderr } = await inFork(["hub", "share"])
    expect(stderr).toContain("as github.com/ann/api: members of the project can read it.")
    expect(stderr).toContain(`is on the hub as ${KEY}; to add to that: dex hub share --name ${KEY}`)
    expect((await inFork(["hub", "share", "--name", KEY])).stderr).not.toContain("to add to that")
  })

  test("share it and find each other's conversations, without the hub's operator", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const [ann, bob] = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
    const hub = await startHub(hubEnv(team))
    const asAnn = await developer("11111111-1111-4222-8333-444444444444", "why does the refresh token race", "A mutex.")
    const asBob = await developer("22222222-1111-4222-8333-444444444444", "where is the quokka queue", "In Redis.")
    expect((await asAnn(["hub", "login", hub.url, "--token-stdin"], await tokenFor(team, ann))).code).toBe(0)
    expect((await asBob(["hub", "login", hub.url, "--token-stdin"], await tokenFor(team, bob))).code).toBe(0)
    expect((await asAnn(["hub", "share", "--yes"])).code).toBe(0)

    const refused = await asBob(["hub", "share", "--yes"])
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain(`${KEY} is not shared with you yet. dex has sent its owners a request`)
    expect((await asAnn(["hub", "status"])).stdout).toContain("1 request is waiting for your answer")
    const listed = await asAnn(["hub", "requests"])
    expect(listed.stdout).toMatch(new RegExp(`^bob {2}${KEY} {2}`))
    const approved = await asAnn(["hub", "requests", "approve", "bob"])
    expect([approved.code, approved.stdout]).toEqual([0, `bob can now read and push to ${KEY}.\n`])
    expect((await asAnn(["hub", "requests"])).stdout + (await asAnn(["hub", "status"])).stdout).not.toContain("bob")

    const shared = await asBob(["hub", "share", "--yes"])
    expect([shared.code, shared.stdout]).toEqual([0, expect.stringContaining("1 conversation sent")])
    const finds = (run: typeof asAnn, query: string) => async () => (await run(["search", query, "--team"])).stdout
    await expect.poll(finds(asBob, "refresh token race")).toContain("ann/claude_code:1111")
    await expect.poll(finds(asAnn, "quokka queue")).toContain("bob/claude_code:2222")

    const members = await asAnn(["hub", "members"])
    expect(members.stdout).toBe("ann  own\nbob  write\n")
    expect((await asBob(["hub", "members"])).stderr).toContain(`There is no project ${KEY} that you own.`)
    const lowered = await asAnn(["hub", "grant", "bob", KEY, "--level", "none"])
    expect([lowered.code, lowered.stdout]).toEqual([0, `bob no longer has access to ${KEY}.\n`])
    expect((await asBob(["search", "refresh token race", "--team"])).stdout).not.toContain("ann/")
    const again = await asAnn(["hub", "grant", "bob", "--level", "read"])
    expect([again.code, again.stdout]).toEqual([0, `bob can now read ${KEY}.\n`])
    await expect.poll(finds(asBob, "refresh token race")).toContain("ann/claude_code:1111")
  })
})
