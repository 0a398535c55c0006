import { randomBytes } from "node:crypto"
import { rmSync } from "node:fs"
import { createDex } from "../app/dex.ts"
import { waitForTraces } from "../app/run.ts"
import { dexHome } from "../config/home.ts"
import { fileNameFromTitle } from "../core/format.ts"
import { html } from "../render/html/html.ts"
import { listen } from "../serve/http/listen.ts"
import { createFreshness } from "../serve/mcp/fresh.ts"
import { reuseDex } from "../serve/mcp/hold.ts"
import { type ShareFormat, share } from "../tools/share/share.ts"
import { takeInstance } from "../watch/instance.ts"
import { watchAll } from "../watch/watch.ts"
import { actions } from "./actions.ts"
import { createViewApp, ENTER_PATH } from "./app.ts"
import { createChanges } from "./changes.ts"
import type { Door, Entry, EntryRequest } from "./door.ts"
import { commitPage } from "./files/commit-page.ts"
import { decisionPage, fixPage } from "./files/decision-page.ts"
import { filePage, filePart } from "./files/file-page.ts"
import { findPage } from "./find/find-page.ts"
import { homePage, newestPart, spentPart } from "./home/home-page.ts"
import { deletedSoonPart, leftOpenPart } from "./home/left-open-part.ts"
import { projectsPart } from "./home/projects-part.ts"
import { yearPart } from "./home/year-part.ts"
import { loadAssets } from "./layout.ts"
import { type PageDex, pageDex } from "./learning.ts"
import { type PageRoute, runToolForPage } from "./page.ts"
import { findInPage } from "./read/find-in-page.ts"
import { rawPage } from "./read/raw-page.ts"
import { completePart, factsPart, outlinePart, readPage, readPart } from "./read/read-page.ts"
import { CODE_LIFETIME_MS, createSession } from "./session.ts"
import { usagePage } from "./usage/usage-page.ts"

type ViewOptions = {
  env: Record<string, string | undefined>
  cwd: string
  version: string
  log(line: string): void
  /** The view ends after this many milliseconds without a request. */
  idleMs: number
  /** The longest time that a page waits for learning, in milliseconds. */
  learnWithinMs?: number
  /** Lets another `dex view` of this home use this one, which is not possible without a door. */
  door?: Door | undefined
}

export type ServedView = {
  /** Creates an address that lets one browser in, once. */
  enter(path: string): string
  /** Creates an address like `enter`, and on request a file that opens it. Without a door there is no file. */
  entry(request: EntryRequest): Entry
  url: string
  /** Resolves when the view has ended because it was idle for too long or was stopped. */
  ended: Promise<"idle" | "stopped">
  stop(): Promise<void>
}

const LEARN_WITHIN_MS = 1_500

/** Serves the view on this machine only, until it is stopped or idle for too long. */
export async function serveView(options: ViewOptions): Promise<ServedView> {
  const { env, cwd, version, log, door } = options
  const home = dexHome(env)
  const base = randomBase()
  const start = { env, cwd, version }
  const withDex = reuseDex(() => createDex({ ...start, staysSmall: true }))
  const fresh = createFreshness(start, log, () => changes.reportLearning())
  const { learnWithinMs = LEARN_WITHIN_MS } = options
  const use = <T>(work: (dex: PageDex) => Promise<T>) => withDex((dex) => work(pageDex(dex, fresh, learnWithinMs)))
  const session = createSession(base, Date.now)
  const entryFiles = createEntryFiles(door)
  const idleTimer = createIdleTimer(options.idleMs)
  const pageWatch = createPageWatch(start, log)
  const changes = createChanges({ ...home, use: withDex, log, onOpen: (isOpen) => pageWatch.setOpen(isOpen) })
  const app = createViewApp({
    ...{ base, session, pages, actions, use, log },
    enter: (code) => {
      entryFiles.remove(code)
      return session.enter(code)
    },
    assets: loadAssets(),
    onUse: idleTimer.recordUse,
    changes: () => changes.open(),
  })
  // A random free port each time: at a fixed port, a service worker of another server may still be in the browser and answer
  // in place of the view.
  const listening = await listen({
    fetch: (request) => app.fetch(request),
    address: { host: "127.0.0.1", port: 0 },
    isOwner: ({ cookie }) => session.isAdmitted(cookie),
    log,
  })
  const addressWith = (code: string, path: string) =>
    `${listening.url}${ENTER_PATH}?${new URLSearchParams({ code, ...(path !== "" && { to: path }) })}`
  const entry = (request: EntryRequest): Entry => {
    const code = session.makeCode()
    const address = addressWith(code, request.to)
    const page = request.page ? entryFiles.write(code, address) : undefined
    return { address, page }
  }
  await door
    ?.open(entry)
    .catch((error: unknown) =>
      log(`A second \`dex view\` cannot connect to this one and will start its own server: ${String(error)}`),
    )
  void fresh.readNewMessages(0)
  const stop = async (reason: "idle" | "stopped") => {
    changes.stop()
    door?.close()
    listening.close()
    await Promise.all([pageWatch.setOpen(false), fresh.stop(600), waitForTraces()])
    idleTimer.end(reason)
  }
  idleTimer.onIdle(() => void stop("idle"))
  return {
    url: `${listening.url}${base}/`,
    enter: (path) => addressWith(session.makeCode(), path),
    entry,
    ended: idleTimer.ended,
    stop: () => stop("stopped"),
  }
}

/** A new base for every view, so that an old one is useless to a server that later listens at the old port. */
function randomBase(): string {
  return `/${randomBytes(12).toString("base64url").replaceAll(/[_-]/g, "0")}`
}

/**
 * Manages the files that let a browser in. Each is removed when its code is used or expires; the door removes the rest at the
 * end.
 */
function createEntryFiles(door: Door | undefined) {
  const pages = new Map<string, string>()
  const removePage = (code: string) => {
    const page = pages.get(code)
    if (page !== undefined) rmSync(page, { force: true })
    pages.delete(code)
  }
  return {
    remove: removePage,
    write(code: string, address: string): string | undefined {
      const page = door?.writePage(address)
      if (page === undefined) return undefined
      pages.set(code, page)
      setTimeout(() => removePage(code), CODE_LIFETIME_MS).unref()
      return page
    },
  }
}

/** Calls `onIdle` after `idleMs` without a request. */
function createIdleTimer(idleMs: number) {
  const { promise: ended, resolve: end } = Promise.withResolvers<"idle" | "stopped">()
  let usedAt = Date.now()
  let onIdle = () => {}
  let timer: NodeJS.Timeout
  const startTimer = (ms: number) => {
    timer = setTimeout(() => {
      const remaining = usedAt + idleMs - Date.now()
      if (remaining <= 0) onIdle()
      else startTimer(remaining)
    }, ms)
  }
  startTimer(idleMs)
  return {
    ended,
    recordUse: () => {
      usedAt = Date.now()
    },
    onIdle: (handler: () => void) => {
      onIdle = handler
    },
    end: (reason: "idle" | "stopped") => {
      clearTimeout(timer)
      end(reason)
    },
  }
}

type StartOptions = { env: Record<string, string | undefined>; cwd: string; version: string }

/** While a page is open, reads what agents write, like `dex watch`. Leaves this to `dex watch` if that is running. */
function createPageWatch(start: StartOptions, log: (line: string) => void) {
  let controller: AbortController | undefined
  let lastRun: Promise<void> = Promise.resolve()
  const watchUntil = async (signal: AbortSignal) => {
    const dex = createDex(start)
    try {
      const instance = await takeInstance(dex.home)
      if (!instance) return
      try {
        await watchAll({
          dex,
          connectors: await dex.allConnectors(),
          signal,
          say: (event) => void (event.event === "problem" && log(event.message)),
        })
      } finally {
        instance.release()
      }
    } finally {
      dex.close()
    }
  }
  return {
    async setOpen(isOpen: boolean): Promise<void> {
      if (isOpen === (controller !== undefined)) return lastRun
      controller?.abort()
      controller = isOpen ? new AbortController() : undefined
      const signal = controller?.signal
      if (signal)
        lastRun = lastRun
          .then(() => (signal.aborted ? undefined : watchUntil(signal)))
          .catch((error: unknown) => log(String(error)))
      return lastRun
    },
  }
}

const EXPORT_TYPES: Record<ShareFormat, [ending: string, type: string]> = {
  html: ["html", "text/html; charset=utf-8"],
  markdown: ["md", "text/markdown; charset=utf-8"],
}

/** The conversation as one file, in the form that `dex share` writes. */
function exportPage(format: ShareFormat): PageRoute["render"] {
  return async ({ dex, params }) => {
    const { title, text = "" } = await runToolForPage(dex, share, { id: params.ref ?? "", format, print: true })
    const [extension, type] = EXPORT_TYPES[format]
    return { title, body: html``, file: { name: `${fileNameFromTitle(title)}.${extension}`, type, text } }
  }
}

/** Every page, with its path under the base. */
export const pages: readonly PageRoute[] = [
  { path: "/", render: homePage },
  { path: "/year", render: yearPart },
  { path: "/spent", render: spentPart },
  { path: "/newest", render: newestPart },
  { path: "/left-open", render: leftOpenPart },
  { path: "/deleted-soon", render: deletedSoonPart },
  { path: "/projects", render: projectsPart },
  { path: "/usage", render: usagePage },
  { path: "/find", render: findPage },
  { path: "/c/:ref", render: readPage },
  { path: "/c/:ref/part", render: readPart },
  { path: "/c/:ref/outline", render: outlinePart },
  { path: "/c/:ref/facts", render: factsPart },
  { path: "/c/:ref/find", render: findInPage },
  { path: "/c/:ref/whole/:number/:part", render: completePart },
  { path: "/c/:ref/raw", render: rawPage },
  { path: "/c/:ref/export.html", render: exportPage("html") },
  { path: "/c/:ref/export.md", render: exportPage("markdown") },
  { path: "/file", render: filePage },
  { path: "/file/part", render: filePart },
  { path: "/commit", render: commitPage },
  { path: "/decision/:id", render: decisionPage },
  { path: "/fix/:id", render: fixPage },
]
