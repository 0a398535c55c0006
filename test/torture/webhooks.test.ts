import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { Webhook } from "standardwebhooks"
import { expect, onTestFinished, test } from "vitest"
import { generator } from "../../bench/corpus.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { newSecret } from "../../src/suggest/deliver/sign.ts"
import { receiver } from "../suggest/deliver/receiver.ts"
import { subscriptionOf } from "../support/suggestions.ts"
import { tempDir } from "../support/temp.ts"

/** 400 events and 10 kills in CI, 5,000 and 100 with `npm run torture`. */
const EVENTS = Number(process.env.DEX_EVENTS ?? 400)
const KILLS = Number(process.env.DEX_WEBHOOK_KILLS ?? 10)
const FAILING = 0.3
/** The sender's clock is so fast that ten hours of the schedule take five seconds. */
const SPEED = 7_200
const SENDER = fileURLToPath(new URL("../suggest/deliver/sender.ts", import.meta.url))

test(
  `none of ${EVENTS} events is lost if the receiver fails ${FAILING * 100} % of the time and the sender is killed ${KILLS} times`,
  async () => {
    const random = generator(Number(process.env.DEX_SEED ?? 7))
    const secret = newSecret()
    const library = new Webhook(secret)
    const accepted = new Map<string, number>()
    const ids = new Map<string, Set<string>>()
    const wrong: string[] = []
    let failed = 0
    let onRequest = () => {}
    const { url, host, received } = await receiver(({ headers, body }, response) => {
      const id = String(headers["webhook-id"])
      const at = new Date(Number(headers["webhook-timestamp"]) * 1000)
      if (headers["webhook-signature"] !== library.sign(id, at, body)) wrong.push(`${id}: the signature is not right`)
      const event = (JSON.parse(body) as { data: { id: string } }).data.id
      ids.set(event, (ids.get(event) ?? new Set()).add(id))
      const dice = random() / FAILING
      if (dice < 1) failed++
      if (dice < 0.4) response.writeHead(500).end()
      else if (dice < 0.6) response.writeHead(302, { Location: url }).end()
      else if (dice < 0.8) response.socket?.destroy()
      else if (dice < 1) response.writeHead(429, { "Retry-After": "1" }).end()
      else {
        accepted.set(event, (accepted.get(event) ?? 0) + 1)
        response.writeHead(204).end()
      }
      onRequest()
    })
    const dir = tempDir()
    const path = join(dir, "suggest.db")
    const before = openSuggestions(path)
    before.subscribe(subscriptionOf("sub", { deliver: "webhook", url }), secret)
    before.close()

    const epoch = Date.now()
    const start = () => spawnSender([dir, host, String(EVENTS), String(epoch), String(SPEED)])
    let killed = 0
    for (; killed < KILLS; killed++) {
      const child = start()
      // Every other kill happens while the sender makes events. The others happen shortly after a number of further requests, so
      // that some fall between sending a message and recording that. All happen before the campaign ends.
      const after = received.length + 1 + Math.floor(random() * ((2 * EVENTS * 0.9) / KILLS))
      const kill = (within: number) => setTimeout(() => child.process.kill("SIGKILL"), random() * within)
      const whileMaking = killed % 2 === 0
      if (whileMaking) child.process.stdout!.once("data", () => kill(10))
      onRequest = () => {
        if (received.length === after) kill(30)
      }
      const { code, signal, stderr } = await child.ended
      if (signal !== "SIGKILL") {
        expect(code, stderr).toBe(0)
        break
      }
      const db = new Database(path)
      if (db.pragma("integrity_check", { simple: true }) !== "ok") wrong.push(`after kill ${killed}: damaged`)
      db.close()
    }
    onRequest = () => {}
    let resent = 0
    for (;;) {
      const { code, stderr } = await start().ended
      expect(code, stderr).toBe(0)
      const after = openSuggestions(path)
      const dead = after.retryDead(0)
      after.close()
      resent += dead
      if (dead === 0) break
    }

    const lost = Array.from({ length: EVENTS }, (_, i) => `event-${i + 1}`).filter((event) => !accepted.has(event))
    const twice = [...accepted.values()].filter((times) => times > 1).length
    console.log(
      `${EVENTS} events, ${killed} kills, ${received.length} requests, ${failed} of them failed by the receiver (${Math.round((100 * failed) / received.length)} %): ${accepted.size} delivered, ${lost.length} lost, ${twice} more than once under the same id, ${resent} sent again by hand after the whole schedule`,
    )
    expect(wrong).toEqual([])
    expect(lost).toEqual([])
    expect(killed).toBe(KILLS)
    expect([...ids].filter(([event, of]) => of.size !== 1 || !of.has(`msg_${event}`))).toEqual([])
    expect(twice).toBeLessThan(EVENTS / 4)
    const end = openSuggestions(path)
    onTestFinished(() => end.close())
    expect(end.outbox()).toMatchObject({ waiting: 0, delivered: EVENTS, dead: 0 })
  },
  60_000 + KILLS * 6_000,
)

type Ended = { code: number | null; signal: NodeJS.Signals | null; stderr: string }

function spawnSender(args: string[]): { process: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [SENDER, ...args], { stdio: ["ignore", "pipe", "pipe"] })
  onTestFinished(() => void child.kill("SIGKILL"))
  child.stdout.resume()
  let stderr = ""
  child.stderr.on("data", (chunk) => {
    stderr += chunk
  })
  return {
    process: child,
    ended: new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal, stderr }))),
  }
}
