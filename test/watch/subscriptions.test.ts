import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { optIn } from "../../src/config/projects.ts"
import { syncProjectCode } from "../../src/ingest/project-code.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { tellOfFiles, tellOfMessages } from "../../src/tools/subscriptions/tell-subscribers.ts"
import { receiver } from "../deliver/receiver.ts"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { suggestionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"
import { startWatch } from "./watching.ts"

const FILES = ["src/token.ts", "src/session.ts"]

/** A project in which two files were edited together, four times. */
function projectWithPast() {
  const home = tempDir()
  const project = join(home, "api")
  mkdirSync(join(project, "src"), { recursive: true })
  const edit = (path: string) => ({
    tool: { name: "Edit", input: { file_path: join(project, path), old_string: "1", new_string: "2" }, output: "ok" },
  })
  for (let i = 1; i <= 4; i++)
    claudeSession(home, {
      id: `${String(i).repeat(8)}-1111-4111-8111-111111111111`,
      cwd: project,
      start: `2026-11-0${i}T10:00:00Z`,
      turns: [{ user: "Let tokens live for an hour" }, ...FILES.map(edit)],
    })
  const run = (args: string[]) => dex(home, args, {}, undefined, "", project)
  return { home, project, edit, run }
}

test("a file that is changed while dex watch runs tells a webhook what was done to it before", async () => {
  const { home, project, run: inProject } = projectWithPast()
  const file = join(project, "src", "token.ts")
  writeFileSync(file, "export const a = 1\n")
  await dex(home, ["sync"])
  let heard = (_: string) => {}
  const told = new Promise<string>((resolve) => {
    heard = resolve
  })
  const { url, host } = await receiver(({ body }, response) => {
    response.writeHead(204).end()
    heard(body)
  })
  await dex(home, ["config", "set", "deliver.allow_hosts", host])
  expect(
    await inProject(["subscribe", "src/**", "--url", url, "--min-relevance", "0", "--cooldown-ms", "0"]),
  ).toMatchObject({ code: 0 })
  await startWatch(home, { cwd: project })
  writeFileSync(file, "export const a = 3\n")
  const { data } = JSON.parse(await told)
  expect(data).toMatchObject({ event: "watch", project: "api", file: "src/token.ts" })
  expect(data.items.length).toBeGreaterThan(0)
})

test("dex watch ends at once while a receiver does not answer, and what was on its way is sent the next time", async () => {
  const { home, project, run: inProject } = projectWithPast()
  const ids: string[] = []
  let heard = () => {}
  const asked = new Promise<void>((resolve) => {
    heard = resolve
  })
  let answers = false
  const { url, host } = await receiver(({ headers }, response) => {
    ids.push(String(headers["webhook-id"]))
    if (answers) response.writeHead(204).end()
    heard()
  })
  await dex(home, ["config", "set", "deliver.allow_hosts", host])
  const { id } = JSON.parse((await inProject(["subscribe", "src/**", "--url", url, "--json"])).stdout)
  const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
  onTestFinished(() => suggestions.close())
  suggestions.save(suggestionOf("told", { status: "pending", moment: { project, at: Date.now() } }), {
    subscription: id,
  })
  const watch = await startWatch(home, { cwd: project })
  await asked
  const began = performance.now()
  watch.child.kill("SIGTERM")
  expect(await watch.exited).toEqual({ code: 0, signal: null })
  expect(performance.now() - began).toBeLessThan(5_000)
  expect(watch.stderr()).not.toMatch(/not delivered|error/i)
  expect(suggestions.outbox()).toEqual({ waiting: 1, delivered: 0, dead: 0 })
  answers = true
  expect(await inProject(["subscriptions", "--send"])).toMatchObject({ code: 0 })
  expect(suggestions.outbox()).toMatchObject({ waiting: 0, delivered: 1 })
  expect(new Set(ids)).toEqual(new Set(["msg_told"]))
})

test("a changed file tells who asked for what it defines, by symbol or as an entity; and nobody where dex is to be silent", async () => {
  const { home, project, run } = projectWithPast()
  const git = (...args: string[]) => execFileSync("git", ["-C", project, ...args], { stdio: "ignore" })
  const files = {
    "src/token.ts": "export class Keeper {\n  renewToken() {}\n}\n",
    "src/session.ts": "export const s = 1\n",
  }
  for (const [path, text] of Object.entries(files)) writeFileSync(join(project, path), text)
  git("init", "-q")
  git("add", ".")
  await run(["sync"])
  const subscribe = async (pattern: string) =>
    JSON.parse((await run(["subscribe", pattern, "--min-relevance", "0", "--cooldown-ms", "0", "--json"])).stdout)
      .id as string
  const patterns = ["symbol:renewToken", "symbol:Keeper.renewToken", "entity:Keeper", "symbol:renew"]
  const ids = [] as string[]
  for (const pattern of patterns) ids.push(await subscribe(pattern))
  const local = (env: Record<string, string> = {}) => {
    const dex = createDex({ env: { HOME: home, ...env }, cwd: project, version: "test" })
    onTestFinished(() => dex.close())
    return dex
  }
  optIn(local().home, project)
  await syncProjectCode({ knowledge: await local().knowledge(), project }, {})
  const changed = ["src/token.ts"]
  expect(await tellOfFiles(local({ DEX_QUIET: "true" }), project, changed)).toBe(0)
  expect(await tellOfFiles(local({ DEX_PROACTIVE_ENABLED: "false" }), project, changed)).toBe(0)
  const without = { DEX_PROACTIVE_ENABLE_RELATED_CODE: "false", DEX_PROACTIVE_ENABLE_CONVERSATIONS: "false" }
  expect(await tellOfFiles(local(without), project, changed)).toBe(0)
  expect(await tellOfFiles(local(), project, changed)).toBe(3)
  const told = async (of: string) => JSON.parse((await run(["suggestions", "--subscription", of, "--json"])).stdout)
  const counts = await Promise.all(ids.map(async (id) => (await told(id)).suggestions.length))
  expect(counts).toEqual([1, 1, 1, 0])
})

test("what a person says on a topic tells those who asked for it of the file at hand, and nobody else", async () => {
  const { home, project, edit, run } = projectWithPast()
  const id = "99999999-1111-4111-8111-111111111111"
  const start = new Date(Date.now() - 240_000).toISOString()
  claudeSession(home, { id, cwd: project, start, turns: [{ user: "The refresh token is lost" }, edit("src/token.ts")] })
  await run(["sync"])
  const topic = async (words: string) =>
    JSON.parse((await run(["subscribe", `topic:${words}`, "--min-relevance", "0", "--json"])).stdout).id as string
  const [wanted, other] = [await topic("refresh token"), await topic("refresh database")]
  const local = createDex({ env: { HOME: home }, cwd: project, version: "test" })
  onTestFinished(() => local.close())
  expect(await tellOfMessages(local, [{ source: "claude_code", id }])).toBe(1)
  expect(await tellOfMessages(local, [{ source: "claude_code", id: "11111111-1111-4111-8111-111111111111" }])).toBe(0)
  const told = async (of: string) => JSON.parse((await run(["suggestions", "--subscription", of, "--json"])).stdout)
  expect((await told(wanted)).suggestions[0].items.length).toBeGreaterThan(0)
  expect((await told(other)).suggestions).toEqual([])
})
