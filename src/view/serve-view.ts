import { randomBytes } from "node:crypto"
import { createDex } from "../app/dex.ts"
import { dexHome, type Home } from "../config/home.ts"
import { isDexError } from "../core/error.ts"
import { type Listening, listen } from "../http/listen.ts"
import { createFreshness } from "../mcp/fresh.ts"
import { holdDex } from "../mcp/hold.ts"
import { actions } from "./actions.ts"
import { createViewApp } from "./app.ts"
import { loadAssets } from "./assets.ts"
import { createChanges } from "./changes.ts"
import { createIdle } from "./idle.ts"
import { type PageDex, pageDex } from "./learning.ts"
import { pages } from "./pages.ts"
import { keepPlace, placeOf, type ViewPlace } from "./place.ts"
import { createSession } from "./session.ts"
import { createWatching } from "./watching.ts"

export type ViewOptions = {
  env: Record<string, string | undefined>
  cwd: string
  version: string
  log(line: string): void
  /** After so long without a request it ends. */
  idleMs: number
  /** A page waits this long for what is being learned. */
  learnWithinMs?: number
}

export type ServedView = {
  /** An address that lets one browser in, once. */
  enter(path: string): string
  url: string
  /** Comes when it is over: nobody asked for anything any more, or it was stopped. */
  ended: Promise<"idle" | "stopped">
  stop(): Promise<void>
}

const LEARN_WITHIN_MS = 1_500
/** The port is chosen once, out of those that no service has, and remembered. */
const FIRST_PORT = 41_000
const PORTS = 8_000

/** Serves the view on this machine alone, until it is stopped or nobody looks any more. */
export async function serveView(options: ViewOptions): Promise<ServedView> {
  const { env, cwd, version, log } = options
  const home = dexHome(env)
  const place = placeOf(home) ?? { port: FIRST_PORT + Math.floor(Math.random() * PORTS), base: newBase() }
  const start = { env, cwd, version }
  const hold = holdDex(() => createDex({ ...start, staysSmall: true }))
  const fresh = createFreshness(start, log, () => changes.lookAtLearning())
  const { learnWithinMs = LEARN_WITHIN_MS } = options
  const use = <T>(work: (dex: PageDex) => Promise<T>) => hold((dex) => work(pageDex(dex, fresh, learnWithinMs)))
  const key = randomBytes(32).toString("base64url")
  const session = createSession(place.base, Date.now)
  const idle = createIdle(options.idleMs)
  const watching = createWatching(start, log)
  const changes = createChanges({ ...home, use: hold, log, onOpen: (isOpen) => watching.set(isOpen) })
  const app = createViewApp({
    ...{ base: place.base, session, key, pages, actions, use, log },
    assets: loadAssets(),
    used: idle.used,
    changes: () => changes.open(),
  })
  const listening = await listenNear(place.port, (port) =>
    listen({
      fetch: (request) => app.fetch(request),
      place: { host: "127.0.0.1", port },
      isOwner: ({ cookie }) => session.isIn(cookie),
      log,
    }),
  )
  const { port } = new URL(listening.url)
  keepPlace(home, { port: Number(port), base: place.base, key, pid: process.pid })
  void fresh.pickUp(0)
  const stop = async (why: "idle" | "stopped") => {
    changes.stop()
    listening.close()
    await Promise.all([watching.set(false), fresh.stop(600)])
    idle.end(why)
  }
  idle.onIdle(() => void stop("idle"))
  return {
    url: `${listening.url}${place.base}/`,
    enter: (path) =>
      `${listening.url}${place.base}/enter?${new URLSearchParams({ code: session.makeCode(), ...(path !== "" && { to: path }) })}`,
    ended: idle.ended,
    stop: () => stop("stopped"),
  }
}

/** The address of a view that runs already, with a code for one more browser. Undefined: none runs. */
export async function enterRunning(home: Pick<Home, "dir">, path: string): Promise<string | undefined> {
  const place = placeOf(home)
  if (place?.key === undefined) return undefined
  const url = `http://127.0.0.1:${place.port}${place.base}`
  try {
    const answer = await fetch(`${url}/code`, {
      method: "POST",
      headers: { Authorization: `Bearer ${place.key}` },
      signal: AbortSignal.timeout(1_000),
    })
    if (!answer.ok) return undefined
    return `${url}/enter?${new URLSearchParams({ code: await answer.text(), ...(path !== "" && { to: path }) })}`
  } catch {
    return undefined // it has ended, or something else is at that port
  }
}

function newBase(): ViewPlace["base"] {
  return `/${randomBytes(12).toString("base64url").replaceAll(/[_-]/g, "0")}`
}

/** At the port that was asked for, or at another one. */
async function listenNear(port: number, listenAt: (port: number) => Promise<Listening>): Promise<Listening> {
  try {
    return await listenAt(port)
  } catch (error) {
    if (!isDexError(error) || error.code !== "port") throw error
    return listenAt(0)
  }
}
