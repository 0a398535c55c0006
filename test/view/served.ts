import { beforeAll, onTestFinished } from "vitest"
import { type ServedView, serveView } from "../../src/view/serve-view.ts"
import { environment } from "../support/dex.ts"

export type Visitor = {
  view: ServedView
  base: string
  /** The cookie of a browser that was let in. */
  cookie: string
  get(path: string, headers?: Record<string, string>): Promise<Response>
  log: string[]
}

type Ends = (stop: () => Promise<void>) => void

/**
 * The view of a home, served by this process; `cwd` is where `dex view` was started. It ends with the test, or when `ends`
 * says.
 */
export async function served(
  home: string,
  log: (line: string) => void,
  idleMs = 600_000,
  cwd = home,
  ends: Ends = onTestFinished,
): Promise<ServedView> {
  const view = await serveView({ env: environment(home, {}), cwd, version: "0.0.0", log, idleMs })
  ends(() => view.stop())
  return view
}

/** A visitor who was let in. */
export async function visit(home: string, cwd = home, ends?: Ends): Promise<Visitor> {
  const log: string[] = []
  const view = await served(home, (line) => void log.push(line), undefined, cwd, ends)
  const entered = await fetch(view.enter(""), { redirect: "manual", headers: { connection: "close" } })
  const cookie = entered.headers.get("set-cookie")!.split(";")[0]!
  const base = view.url.replace(/\/$/, "")
  // The next view may use the same port, and must not get a connection of this one.
  const get: Visitor["get"] = (path, headers) =>
    fetch(`${base}${path}`, { headers: { cookie, connection: "close", ...headers }, redirect: "manual" })
  return { view, base, cookie, log, get }
}

/** One visitor for all tests of a file that only read. Call it at the top of the file, after the home is filled. */
export function visitOnce(home: string): () => Visitor {
  let visitor: Visitor
  beforeAll(async () => {
    let stop = async () => {}
    visitor = await visit(home, home, (end) => {
      stop = end
    })
    return () => stop()
  })
  return () => visitor
}
