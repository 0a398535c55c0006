import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { offeredTools } from "../../src/serve/mcp/definitions.ts"
import { DEX, dex, type Run } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { standInHub, TOKEN } from "../support/stand-in-hub.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

const KEY = "github.com/acme/api"
const A = "aaaaaaaa-1111-4222-8333-444444444444"
const B = "bbbbbbbb-1111-4222-8333-444444444444"

/** A home with a git project, two conversations in it and one elsewhere, after a sync. */
async function laptop() {
  const home = tempDir()
  const project = join(home, "code", "api")
  mkdirSync(project, { recursive: true })
  execFileSync("git", ["init", "-q", project])
  execFileSync("git", ["remote", "add", "origin", "https://ann:tok@GitHub.com/acme/api.git"], { cwd: project })
  const session = (id: string, prompts: string[], cwd = project) =>
    claudeSession(home, {
      id,
      cwd,
      start: "2026-10-02T10:00:00Z",
      turns: prompts.map((user) => ({ user, assistant: `answer to ${user} in ${project}/src/a.ts` })),
    })
  session(A, ["walrus one"])
  session(B, ["walrus two"])
  session("cccccccc-1111-4222-8333-444444444444", ["of another project"], join(home, "other"))
  const run = (args: string[], input = "", cwd = project): Promise<Run> =>
    input === "" ? warmDex(home, args, {}, cwd) : dex(home, args, {}, DEX, input, cwd)
  const json = async (args: string[], input = "") => {
    const { code, stdout, stderr } = await run([...args, "--json"], input)
    if (code !== 0) throw new Error(`dex ${args.join(" ")}: ${code} ${stderr}`)
    return JSON.parse(stdout)
  }
  expect(await run(["sync"])).toMatchObject({ code: 0 })
  return { home, project, session, run, json }
}

async function shared() {
  const hub = await standInHub()
  const place = await laptop()
  await place.json(["hub", "login", hub.url, "--token-stdin"], `${TOKEN}\n`)
  await place.json(["hub", "share", "--yes"])
  return { ...place, hub }
}

test("from login to deletion, only what is shared is ever on the hub", async () => {
  const hub = await standInHub()
  const { home, project, session, run, json } = await laptop()
  expect(await json(["hub"])).toEqual({ logged_in: false, shared: [] })
  expect(await json(["hub", "login", hub.url, "--token-stdin"], TOKEN)).toMatchObject({
    member: "alice",
    tenant: "acme",
  })
  const file = join(home, ".dex", "hub.json")
  if (process.platform !== "win32") expect(statSync(file).mode & 0o777).toBe(0o600)

  const refused = await run(["hub", "share"])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("2 conversations, 4 messages")])
  expect(refused.stderr).toContain("Add --yes")
  expect(hub.calls).toEqual(["GET /v1/me"])

  expect(await json(["hub", "share", "--yes"])).toMatchObject({
    summary: { key: KEY, conversations: 2, what: ["said", "called", "returned"], visibility: "project" },
    pushed: { sent: 2, refused: 0, complete: true },
  })
  expect(hub.consents.get(KEY)).toEqual(["said", "called", "returned"])
  expect([...hub.stored.keys()].sort()).toEqual([`claude_code:${A}`, `claude_code:${B}`])
  expect(await json(["hub", "status"])).toMatchObject({
    reachable: true,
    waiting: 0,
    shared: [{ project, key: KEY, sent: 2, refused: 0 }],
  })

  session(A, ["walrus one", "walrus three"])
  expect(await run(["sync"])).toMatchObject({ code: 0 })
  // The sync has ended; the push continues in the background.
  await expect.poll(() => hub.messagesOf(`claude_code:${A}`).length).toBe(4)

  expect(await json(["hub", "hold", B, "--forget"])).toMatchObject({ on_hub: 1, pushed: { removed: 1 } })
  expect([...hub.stored.keys()]).toEqual([`claude_code:${A}`])
  expect(await json(["hub", "unshare", "--forget", "--yes"])).toMatchObject({
    unshared: project,
    pushed: { removed: 1 },
  })
  expect(hub.stored.size).toBe(0)
  expect(hub.consents.size).toBe(0)
  expect(await json(["hub", "logout"])).toMatchObject({ logged_out: true })
  expect(readFileSync(file, "utf8")).not.toContain(TOKEN)
  const everything = hub.received()
  expect(everything).toContain("walrus")
  for (const secret of [home, "of another project", "ann:tok"]) expect(everything).not.toContain(secret)
})

test("the preview shows the exact bytes that are sent, and sends nothing", async () => {
  const hub = await standInHub()
  const { json, run, home } = await laptop()
  const { preview } = await json(["hub", "share", "--dry-run"]) // before the first login
  await json(["hub", "login", hub.url, "--token-stdin"], TOKEN)
  // In each answer, and in the title that was made from it.
  expect(preview.taken_out).toEqual([{ what: "your home folder's path", count: 4 }])
  await json(["hub", "share", "--yes"])
  for (const { id, head, lines } of preview.conversations) {
    const kept = hub.stored.get(id)!
    expect(JSON.stringify(kept.head)).toBe(head)
    const sent = hub.messagesOf(id).map((message) => JSON.stringify(message))
    expect(sent.join("\n")).toBe(lines)
  }
  const { stdout, stderr } = await run(["hub", "share", "--dry-run"])
  expect(stdout).toContain("~/code/api/src/a.ts")
  expect(stdout + stderr).not.toContain(home)
  expect(stderr).toContain("Nothing was sent")
})

test("without a connection a sync reports nothing, the status does, and nothing is lost", async () => {
  const { hub, session, run, json } = await shared()
  hub.mishap = () => "cut"
  session(A, ["walrus one", "walrus three"])
  const synced = await run(["sync"])
  expect([synced.code, synced.stderr.includes("hub")]).toEqual([0, false])
  await expect.poll(async () => (await json(["hub", "status"])).next_try_at).toBeDefined()
  expect(await json(["hub", "status"])).toMatchObject({ reachable: false, waiting: 1 })
  const pushed = await run(["hub", "push"])
  expect([pushed.code, pushed.stderr]).toEqual([2, expect.stringContaining("cannot be reached")])
  const search = await run(["search", "walrus", "--team"])
  expect([search.code, search.stdout]).toEqual([2, ""])
  expect(search.stderr).toMatch(/cannot be reached .*Your team's history could not be read\. Try again later/)
  expect(search.stderr).not.toContain("sent later")
  hub.mishap = () => undefined
  expect(await json(["hub", "push"])).toMatchObject({ pushed: { sent: 1, complete: true } })
  expect(await json(["hub", "status"])).toMatchObject({ reachable: true, waiting: 0 })
})

test("a private project, a project whose file forbids it, and the home folder cannot be shared", async () => {
  const hub = await standInHub()
  const { home, project, run, json } = await laptop()
  await json(["hub", "login", hub.url, "--token-stdin"], TOKEN)
  await run(["private", project])
  expect((await run(["hub", "share", "--yes"])).stderr).toContain("private projects are never sent")
  await run(["private", project, "--off"])
  writeFileSync(join(project, ".dex.json"), '{"hub.share": false}')
  expect((await run(["hub", "share", "--yes"])).stderr).toContain("hub.share is false")
  // The file can only forbid sharing.
  writeFileSync(join(project, ".dex.json"), '{"hub.share": true, "hub.address": "https://evil.test"}')
  expect(await json(["hub", "status"])).toMatchObject({ shared: [] })
  expect((await run(["hub", "share", "--yes"], "", home)).stderr).toContain("home folder is not a project")
  expect(hub.stored.size).toBe(0)
})

test("sharing stops when a project becomes private, and the status says why", async () => {
  const { hub, project, session, run, json } = await shared()
  await run(["private", project])
  session(A, ["walrus one", "walrus three"])
  await run(["sync"])
  expect(await json(["hub", "push"])).toMatchObject({ pushed: { sent: 0 } })
  expect(hub.messagesOf(`claude_code:${A}`)).toHaveLength(2)
  expect((await json(["hub", "status"])).shared[0].paused).toContain("private")
})

test("a conversation that was forgotten here is deleted on the hub automatically", async () => {
  const { hub, run } = await shared()
  expect(await run(["forget", A, "--yes"])).toMatchObject({ code: 0 })
  await expect.poll(() => [...hub.stored.keys()]).toEqual([`claude_code:${B}`])
})

test("consent for one hub is not consent for another", async () => {
  const { json } = await shared()
  const other = await standInHub()
  expect((await json(["hub", "login", other.url, "--token-stdin"], TOKEN)).no_longer_shared).toHaveLength(1)
  expect(await json(["hub", "push"])).toMatchObject({ pushed: { sent: 0 } })
  expect(other.calls.filter((call) => call.startsWith("P"))).toEqual([])
})

test("a token is sent only over https or locally, is never an argument, and is not read from a file that others can read", async () => {
  const { home, run, hub } = await shared()
  const plain = await run(["hub", "login", "http://hub.example.com", "--token-stdin"], TOKEN)
  expect([plain.code, plain.stderr]).toEqual([2, expect.stringContaining("https")])
  const wrong = await run(["hub", "login", hub.url, "--token-stdin"], "dexh_wrong")
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("does not accept your token")])
  expect((await run(["hub", "login", hub.url])).stderr).toContain("--token-stdin")
  expect((await run(["hub", "login", hub.url, "--token", TOKEN])).code).toBe(2)
  if (process.platform === "win32") return
  chmodSync(join(home, ".dex", "hub.json"), 0o644)
  const open = await run(["hub", "push"])
  expect([open.code, open.stderr]).toEqual([2, expect.stringContaining("chmod 600")])
})

test("a project without a remote needs a name, and a name is not a path", async () => {
  const hub = await standInHub()
  const { project, run, json } = await laptop()
  await json(["hub", "login", hub.url, "--token-stdin"], TOKEN)
  execFileSync("git", ["remote", "remove", "origin"], { cwd: project })
  expect((await run(["hub", "share", "--yes"])).stderr).toContain("--name acme/api")
  expect((await run(["hub", "share", "--yes", "--name", "../x"])).code).toBe(2)
  expect((await run(["hub", "share", "--name", "acme/api", "--without", "everything"])).stderr).toContain(
    '"everything" cannot be shared',
  )
  expect(await json(["hub", "share", "--yes", "--name", "acme/api", "--from", "2026-10-03"])).toMatchObject({
    summary: { key: "acme/api", conversations: 0, staying: { older: 2 } },
  })
  expect(hub.stored.size).toBe(0)
})

test("agents are not offered the hub commands", () => {
  expect(offeredTools.map(({ name }) => name)).not.toContain("hub")
})

test("a backup contains the conversations on hold but never the token; doctor checks both files", async () => {
  const { home, run, json } = await shared()
  const held = [`claude_code:${A}`]
  expect(await json(["hub", "hold", A])).toMatchObject({ held })
  const doctor = async () =>
    ((await json(["doctor"])) as { checks: { name: string }[] }).checks.filter(({ name }) => name === "hub")
  expect(await doctor()).toMatchObject([
    { status: "ok", message: expect.stringContaining("projects shared: 1; conversations held back: 1") },
  ])
  const backup = join(tempDir(), "dex.db")
  expect(await run(["backup", backup])).toMatchObject({ code: 0 })
  expect(readFileSync(backup).includes(TOKEN)).toBe(false)
  const other = tempDir()
  expect(await warmDex(other, ["restore", backup])).toMatchObject({ code: 0 })
  expect(JSON.parse((await warmDex(other, ["hub", "hold", "--json"])).stdout)).toEqual({ held })

  writeFileSync(join(home, ".dex", "hub.db"), "not a database, and longer than its first page".repeat(200))
  const { checks } = JSON.parse((await run(["doctor", "--json"])).stdout) as {
    checks: { name: string; status: string; message: string }[]
  }
  expect(checks.find(({ name }) => name === "hub")).toMatchObject({ status: "problem" })
})

test("a project can be shared by a folder that no longer exists; a folder without conversations is refused", async () => {
  const hub = await standInHub()
  const { project, home, json, run } = await laptop()
  await json(["hub", "login", hub.url, "--token-stdin"], `${TOKEN}\n`)
  rmSync(project, { recursive: true })
  const inHome = (args: string[]) => run([...args, "--json"], "", home)
  const unnamed = await inHome(["hub", "share", project, "--yes"])
  expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining("Choose a name for it on the hub")])
  const shared = await inHome(["hub", "share", project, "--name", KEY, "--yes"])
  expect(JSON.parse(shared.stdout)).toMatchObject({
    summary: { project, key: KEY, conversations: 2 },
    pushed: { sent: 2 },
  })
  expect([...hub.stored.keys()].sort()).toEqual([`claude_code:${A}`, `claude_code:${B}`])
  const unknown = await inHome(["hub", "share", join(home, "code", "nope"), "--name", KEY, "--yes"])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("There is no folder")])
})
