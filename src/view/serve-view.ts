import { randomBytes } from "node:crypto"
import { rmSync } from "node:fs"
import { createDex } from "../app/dex.ts"
import { dexHome } from "../config/home.ts"
import { listen } from "../http/listen.ts"
import { createFreshness } from "../mcp/fresh.ts"
import { holdDex } from "../mcp/hold.ts"
import { actions } from "./actions.ts"
import { createViewApp, ENTER } from "./app.ts"
import { loadAssets } from "./assets.ts"
import { createChanges } from "./changes.ts"
import type { Door, Entry, EntryWanted } from "./door.ts"
import { createIdle } from "./idle.ts"
import { type PageDex, pageDex } from "./learning.ts"
import { pages } from "./pages.ts"
import { CODE_LASTS_MS, createSession } from "./session.ts"
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
  /** Through it a further `dex view` of this home gets in. Without one, nobody else does. */
  door?: Door | undefined
}

export type ServedView = {
  /** An address that lets one browser in, once. */
  enter(path: string): string
  /** The same, with a page that leads there if one is wanted and there is a door. */
  entry(wanted: EntryWanted): Entry
  url: string
  /** Comes when it is over: nobody asked for anything any more, or it was stopped. */
  ended: Promise<"idle" | "stopped">
  stop(): Promise<void>
}

const LEARN_WITHIN_MS = 1_500

/** Serves the view on this machine alone, until it is stopped or nobody looks any more. */
export async function serveView(options: ViewOptions): Promise<ServedView> {
  const { env, cwd, version, log, door } = options
  const home = dexHome(env)
  const base = newBase()
  const start = { env, cwd, version }
  const hold = holdDex(() => createDex({ ...start, staysSmall: true }))
  const fresh = createFreshness(start, log, () => changes.lookAtLearning())
  const { learnWithinMs = LEARN_WITHIN_MS } = options
  const use = <T>(work: (dex: PageDex) => Promise<T>) => hold((dex) => work(pageDex(dex, fresh, learnWithinMs)))
  const session = createSession(base, Date.now)
  const opening = createOpening(door)
  const idle = createIdle(options.idleMs)
  const watching = createWatching(start, log)
  const changes = createChanges({ ...home, use: hold, log, onOpen: (isOpen) => watching.set(isOpen) })
  const app = createViewApp({
    ...{ base, session, pages, actions, use, log },
    enter: (code) => {
      opening.used(code)
      return session.enter(code)
    },
    assets: loadAssets(),
    used: idle.used,
    changes: () => changes.open(),
  })
  // At any free port, another one each time: what somebody else served at the last one may still be in the browser, as a
  // service worker that answers for that port.
  const listening = await listen({
    fetch: (request) => app.fetch(request),
    place: { host: "127.0.0.1", port: 0 },
    isOwner: ({ cookie }) => session.isIn(cookie),
    log,
  })
  const addressWith = (code: string, path: string) =>
    `${listening.url}${ENTER}?${new URLSearchParams({ code, ...(path !== "" && { to: path }) })}`
  const entry = (wanted: EntryWanted): Entry => {
    const code = session.makeCode()
    const address = addressWith(code, wanted.to)
    const page = wanted.page ? opening.write(code, address) : undefined
    return { address, ...(page !== undefined && { page }) }
  }
  await door?.open(entry).catch((error: unknown) => log(`A second \`dex view\` will start its own: ${String(error)}`))
  void fresh.pickUp(0)
  const stop = async (why: "idle" | "stopped") => {
    changes.stop()
    door?.close()
    listening.close()
    await Promise.all([watching.set(false), fresh.stop(600)])
    idle.end(why)
  }
  idle.onIdle(() => void stop("idle"))
  return {
    url: `${listening.url}${base}/`,
    enter: (path) => addressWith(session.makeCode(), path),
    entry,
    ended: idle.ended,
    stop: () => stop("stopped"),
  }
}

/** For every view another one: whoever learned an older one, at a port that was left, gets nothing by it. */
function newBase(): string {
  return `/${randomBytes(12).toString("base64url").replaceAll(/[_-]/g, "0")}`
}

/** The pages that lead a browser in. Each is removed when its code was used, or no longer works; the door removes the rest at the end. */
function createOpening(door: Door | undefined) {
  const pages = new Map<string, string>()
  const used = (code: string) => {
    const page = pages.get(code)
    if (page !== undefined) rmSync(page, { force: true })
    pages.delete(code)
  }
  return {
    used,
    write(code: string, address: string): string | undefined {
      const page = door?.writePage(address)
      if (page === undefined) return undefined
      pages.set(code, page)
      setTimeout(() => used(code), CODE_LASTS_MS).unref()
      return page
    },
  }
}
