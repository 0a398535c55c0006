import { appendFileSync } from "node:fs"
import { expect, onTestFinished, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { formatRef } from "../../src/core/ref.ts"
import type { Listeners, ProjectChange } from "../../src/watch/listeners.ts"
import { carryOut } from "../../src/watch/orders.ts"
import { dex as runDex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

function reading(home: string) {
  const dex = createDex({ env: { HOME: home }, cwd: home, version: "0" })
  onTestFinished(() => dex.close())
  const told: string[][] = []
  const changes: ProjectChange[] = []
  const listeners: Listeners = {
    messages: [async (_, refs) => void told.push(refs.map((ref) => formatRef(ref)))],
    project: [async (_, change) => void changes.push(change)],
  }
  return { dex, told, changes, listeners }
}

test("listeners hear of every conversation that changed, whoever read it, and once", async () => {
  const home = tempDir()
  smallHome(home)
  const { dex, told, listeners } = reading(home)
  const first = await carryOut({ type: "sync" }, dex, listeners)
  expect(first).toMatchObject({ busy: false, conversations: 3, problems: [] })
  expect(told[0]!.length).toBe(3)
  const file = claudeSession(home, { id: "4".repeat(8), start: "2026-11-12T09:00:00Z", turns: [{ user: "one" }] })
  await runDex(home, ["sync"])
  const second = await carryOut({ type: "sync", source: "claude_code", after: first.seen! }, dex, listeners)
  expect(second.messages).toBe(0)
  expect(told[1]).toEqual(["claude_code:44444444"])
  const third = await carryOut({ type: "sync", source: "claude_code", after: second.seen! }, dex, listeners)
  expect(told.length).toBe(2)
  appendFileSync(file, "{}\n")
  await carryOut({ type: "sync", source: "codex", after: third.seen! }, dex, listeners)
  expect(told.length).toBe(2)
})

test("a listener that fails is told of, and hinders no other", async () => {
  const home = tempDir()
  smallHome(home)
  const { dex, told, changes, listeners } = reading(home)
  const failing = async () => {
    throw new Error("no room")
  }
  listeners.messages.unshift(failing)
  listeners.project.unshift(failing)
  expect((await carryOut({ type: "sync" }, dex, listeners)).problems).toEqual(["no room"])
  expect(told.length).toBe(1)
  const change = { project: "/code/app", files: ["a.ts"], git: true }
  expect((await carryOut({ type: "project", ...change }, dex, listeners)).problems).toEqual(["no room"])
  expect(changes).toEqual([change])
})
