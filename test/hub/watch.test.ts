import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { logIn } from "../../src/tools/hub/login.ts"
import { run as runHub } from "../../src/tools/hub/run.ts"
import { listeners } from "../../src/watch/listeners.ts"
import { carryOutOrder } from "../../src/watch/orders.ts"
import { environment } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { standInHub, TOKEN } from "../support/stand-in-hub.ts"
import { tempDir } from "../support/temp.ts"

const ID = "aaaaaaaa-1111-4222-8333-444444444444"

test("dex watch sends new conversations if they are shared, and is quiet if the hub cannot be reached", async () => {
  const hub = await standInHub()
  const home = tempDir()
  const cwd = join(home, "api")
  mkdirSync(cwd)
  const say = (...prompts: string[]) =>
    claudeSession(home, { id: ID, cwd, start: "2026-10-02T10:00:00Z", turns: prompts.map((user) => ({ user })) })
  const look = async () => {
    const dex = createDex({ env: environment(home, {}), cwd, version: "0" })
    try {
      return await carryOutOrder({ type: "sync", source: "claude_code" }, dex, listeners)
    } finally {
      dex.close()
    }
  }
  say("one")
  expect((await look()).problems).toEqual([])
  expect(hub.calls).toEqual([])
  await logIn({ dir: join(home, ".dex") }, hub.url, TOKEN)
  const dex = createDex({ env: environment(home, {}), cwd, version: "0" })
  await runHub(dex, { words: ["share"], name: "acme/api", yes: true })
  dex.close()
  say("one", "two")
  expect(await look()).toMatchObject({ problems: [], messages: 1 })
  expect(hub.messagesOf(`claude_code:${ID}`)).toHaveLength(2)
  hub.mishap = () => "cut"
  say("one", "two", "three")
  expect(await look()).toMatchObject({ problems: [], messages: 1 })
  expect(hub.messagesOf(`claude_code:${ID}`)).toHaveLength(2)
})
