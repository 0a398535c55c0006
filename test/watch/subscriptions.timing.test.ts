import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { receiver } from "../suggest/deliver/receiver.ts"
import { dex } from "../support/dex.ts"
import { suggestionOf } from "../support/suggestions.ts"
import { projectWithPast } from "./project-with-past.ts"
import { startWatch } from "./watching.ts"

test("dex watch ends immediately while a receiver does not answer, and the pending delivery is sent the next time", async () => {
  const { home, project, run: inProject } = projectWithPast()
  const ids: string[] = []
  let heard = () => {}
  const requested = new Promise<void>((resolve) => {
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
  await requested
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
