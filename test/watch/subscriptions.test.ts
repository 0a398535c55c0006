import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { optIn } from "../../src/config/projects.ts"
import { syncProjectCode } from "../../src/ingest/project-code.ts"
import { notifyAboutFiles, notifyAboutMessages } from "../../src/tools/subscriptions/notify-subscribers.ts"
import { receiver } from "../suggest/deliver/receiver.ts"
import { claudeSession } from "../support/home.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { projectWithPast } from "./project-with-past.ts"
import { startWatch } from "./watching.ts"

test("when a file changes while dex watch runs, a webhook gets the earlier work on it", async () => {
  const { home, project, run: inProject } = projectWithPast()
  const file = join(project, "src", "token.ts")
  writeFileSync(file, "export const a = 1\n")
  await syncHome(home)
  let heard = (_: string) => {}
  const delivered = new Promise<string>((resolve) => {
    heard = resolve
  })
  const { url, host } = await receiver(({ body }, response) => {
    response.writeHead(204).end()
    heard(body)
  })
  await warmDex(home, ["config", "set", "deliver.allow_hosts", host])
  expect(
    await inProject(["subscribe", "src/**", "--url", url, "--min-relevance", "0", "--cooldown-ms", "0"]),
  ).toMatchObject({ code: 0 })
  await startWatch(home, { cwd: project })
  writeFileSync(file, "export const a = 3\n")
  const { data } = JSON.parse(await delivered)
  expect(data).toMatchObject({ event: "watch", project: "api", file: "src/token.ts" })
  expect(data.items.length).toBeGreaterThan(0)
})

test("a changed file notifies subscribers to what it defines, by symbol or as an entity; and nobody if dex should be silent", async () => {
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
  expect(await notifyAboutFiles(local({ DEX_QUIET: "true" }), project, changed)).toBe(0)
  expect(await notifyAboutFiles(local({ DEX_PROACTIVE_ENABLED: "false" }), project, changed)).toBe(0)
  const without = { DEX_PROACTIVE_OFF: "related_code,conversation" }
  expect(await notifyAboutFiles(local(without), project, changed)).toBe(0)
  expect(await notifyAboutFiles(local(), project, changed)).toBe(3)
  const suggestionsOf = async (of: string) =>
    JSON.parse((await run(["suggestions", "--subscription", of, "--json"])).stdout)
  const counts = await Promise.all(ids.map(async (id) => (await suggestionsOf(id)).suggestions.length))
  expect(counts).toEqual([1, 1, 1, 0])
})

test("a person's words on a topic notify its subscribers about the current file, and nobody else", async () => {
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
  expect(await notifyAboutMessages(local, [{ source: "claude_code", id }])).toBe(1)
  expect(
    await notifyAboutMessages(local, [{ source: "claude_code", id: "11111111-1111-4111-8111-111111111111" }]),
  ).toBe(0)
  const suggestionsOf = async (of: string) =>
    JSON.parse((await run(["suggestions", "--subscription", of, "--json"])).stdout)
  expect((await suggestionsOf(wanted)).suggestions[0].items.length).toBeGreaterThan(0)
  expect((await suggestionsOf(other)).suggestions).toEqual([])
})
