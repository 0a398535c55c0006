import { execFileSync } from "node:child_process"
import { appendFileSync } from "node:fs"
import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { formatRef } from "../../src/core/ref.ts"
import { type Listeners, listeners, type ProjectChange } from "../../src/watch/listeners.ts"
import { carryOutOrder } from "../../src/watch/orders.ts"
import { dex as runDex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

function reading(home: string) {
  const dex = createDex({ env: { HOME: home }, cwd: home, version: "0" })
  onTestFinished(() => dex.close())
  const refsSeen: string[][] = []
  const changes: ProjectChange[] = []
  const heard: Listeners = {
    messages: [async (_, refs) => void refsSeen.push(refs.map((ref) => formatRef(ref)))],
    project: [async (_, change) => void changes.push(change)],
  }
  return { dex, refsSeen, changes, heard }
}

test("listeners get every conversation that changed, whichever process read it, once", async () => {
  const home = tempDir()
  smallHome(home)
  const { dex, refsSeen, heard } = reading(home)
  const first = await carryOutOrder({ type: "sync" }, dex, heard)
  expect(first).toMatchObject({ busy: false, conversations: 3, problems: [] })
  expect(refsSeen[0]!.length).toBe(3)
  const file = claudeSession(home, { id: "4".repeat(8), start: "2026-11-12T09:00:00Z", turns: [{ user: "one" }] })
  await runDex(home, ["sync"])
  const second = await carryOutOrder({ type: "sync", source: "claude_code", after: first.seen! }, dex, heard)
  expect(second.messages).toBe(0)
  expect(refsSeen[1]).toEqual(["claude_code:44444444"])
  const third = await carryOutOrder({ type: "sync", source: "claude_code", after: second.seen! }, dex, heard)
  expect(refsSeen.length).toBe(2)
  appendFileSync(file, "{}\n")
  await carryOutOrder({ type: "sync", source: "codex", after: third.seen! }, dex, heard)
  expect(refsSeen.length).toBe(2)
})

test("learned facts are kept current, if they were ever requested", async () => {
  const home = tempDir()
  smallHome(home)
  const { dex } = reading(home)
  const first = await carryOutOrder({ type: "sync", source: "claude_code" }, dex, listeners)
  expect(dex.hasKnowledge()).toBe(false)
  const knowledge = await dex.knowledge()
  claudeSession(home, { id: "4".repeat(8), start: "2026-11-12T09:00:00Z", turns: [{ user: "one" }] })
  const second = await carryOutOrder({ type: "sync", source: "claude_code", after: first.seen! }, dex, listeners)
  expect(knowledge.conversations.learnedToken()).toBe(second.seen)
})

test("a project's commits are known after its git history changed", async () => {
  const home = tempDir()
  const { dex } = reading(home)
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: home })
  git("init", "-q", "-b", "main")
  git("commit", "-q", "--allow-empty", "-m", "first")
  await carryOutOrder({ type: "project", project: home, files: ["a.ts"], git: false }, dex, listeners)
  expect((await dex.knowledge()).git.gitProject(home)).toBeUndefined()
  expect(await carryOutOrder({ type: "project", project: home, git: true }, dex, listeners)).toMatchObject({
    problems: [],
  })
  expect((await dex.knowledge()).git.gitProject(home)?.head).toMatch(/^[0-9a-f]{40}$/)
})

test("a listener that fails is reported, and does not affect the others", async () => {
  const home = tempDir()
  smallHome(home)
  const { dex, refsSeen, changes, heard } = reading(home)
  const failing = async () => {
    throw new Error("no room")
  }
  heard.messages.unshift(failing)
  heard.project.unshift(failing)
  expect((await carryOutOrder({ type: "sync" }, dex, heard)).problems).toEqual(["no room"])
  expect(refsSeen.length).toBe(1)
  const change = { project: "/code/app", files: ["a.ts"], git: true }
  expect((await carryOutOrder({ type: "project", ...change }, dex, heard)).problems).toEqual(["no room"])
  expect(changes).toEqual([change])
})
