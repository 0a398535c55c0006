import { type Context, Hono } from "hono"
import { isDexError } from "../core/error.ts"
import { html } from "../render/html/html.ts"
import type { Action } from "./actions.ts"
import type { Assets } from "./layout.ts"
import { documentHtml, messagePageHtml, noAccessPage, refreshPage } from "./layout.ts"
import type { PageDex } from "./learning.ts"
import type { PageRoute, ViewPage } from "./page.ts"
import { createAddresses } from "./page.ts"
import type { ViewSession } from "./session.ts"

export type ViewParts = {
  base: string
  session: ViewSession
  /** Returns the cookie for a valid code; undefined otherwise. */
  enter(code: string): string | undefined
  assets: Assets
  pages: readonly PageRoute[]
  actions: readonly Action[]
  use<T>(work: (dex: PageDex) => Promise<T>): Promise<T>
  /** Responds with the stream of changes. */
  changes(request: Request): Response
  /** Called for every request of the admitted browser except the stream of changes, so that the server does not become idle. */
  onUse(): void
  log(line: string): void
}

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
const COMMON_HEADERS = {
  "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  // `no-referrer` would make browsers send `Origin: null` with the view's own forms, and dex would refuse them as foreign.
  "Referrer-Policy": "same-origin",
  "X-DNS-Prefetch-Control": "off",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
}
/** `isLearning`: the page was rendered before dex had learned everything. Also set for error pages. */
type PageVariables = { Variables: { isLearning?: boolean } }
/** This path is not under the base, because a browser that has not entered does not know the base. */
export const ENTER_PATH = "/enter"
const HTML_TYPE = "text/html; charset=utf-8"

/** The routes and their guards. The Host and Origin headers have been checked before a request gets here. */
export function createViewApp(parts: ViewParts) {
  const { base, session, assets } = parts
  const to = createAddresses(base)
  const app = new Hono<PageVariables>()

  app.use(async (c, next) => {
    await next()
    for (const [name, value] of Object.entries(COMMON_HEADERS)) c.res.headers.set(name, value)
  })
  // Refuses requests from other origins. To a browser, another server on this machine is the same site but another origin. Only
  // the entry may be opened from elsewhere: from a page in dex's own folder.
  app.use(async (c, next) => {
    const fetchSite = c.req.header("sec-fetch-site")
    if (c.req.path === ENTER_PATH && c.req.header("sec-fetch-dest") === "document") return next()
    if (fetchSite !== undefined && fetchSite !== "same-origin" && fetchSite !== "none") return c.body(null, 403)
    return next()
  })
  app.get(ENTER_PATH, (c) => {
    const cookie = parts.enter(c.req.query("code") ?? "")
    if (cookie === undefined) return refuseAccess(c)
    // This page refreshes itself, because a browser does not send a strict cookie after a redirect that started at another site.
    const next = addressInside(base, c.req.query("to") ?? "")
    return c.body(refreshPage(next).html, 200, { "Content-Type": HTML_TYPE, "Set-Cookie": cookie })
  })
  // The following routes are only for the browser that was let in.
  app.use(async (c, next) => {
    if (!session.isAdmitted(c.req.header("cookie"))) return refuseAccess(c)
    await next()
    // Lets a page check that this server still answers at its port.
    c.res.headers.set("X-Dex-Token", session.actionToken)
  })
  app.get(`${base}/changes`, (c) => parts.changes(c.req.raw))
  app.use(async (_, next) => {
    parts.onUse()
    return next()
  })
  app.get(`${base}/assets/:name`, (c) => {
    const asset = assets.get(c.req.param("name"))
    if (!asset) return c.body(null, 404)
    return c.body(asset.bytes, 200, {
      "Content-Type": asset.type,
      "Cache-Control": "private, max-age=31536000, immutable",
    })
  })
  const respond = (c: Context<PageVariables>, page: ViewPage, status: 200 | 404 | 400 | 500 = 200) => {
    if (page.file) {
      const { name, type, text } = page.file
      return c.body(text, 200, { "Content-Type": type, "Content-Disposition": `attachment; filename="${name}"` })
    }
    const { html } = page.isPart ? page.body : documentHtml(page, to, assets, session.actionToken, c.get("isLearning"))
    return c.body(html, status, { "Content-Type": HTML_TYPE })
  }
  for (const { path, render } of parts.pages)
    app.get(`${base}${path}`, async (c) => {
      const { pathname, search, searchParams: query } = new URL(c.req.url)
      const request = {
        params: c.req.param(),
        query,
        address: `${pathname}${search}`,
        to,
        actionToken: session.actionToken,
      }
      const page = await parts.use(async (dex) => {
        try {
          return await render({ ...request, dex, isLearning: dex.isLearning })
        } finally {
          c.set("isLearning", dex.isLearning())
        }
      })
      return respond(c, page)
    })
  for (const { path, run } of parts.actions)
    app.post(`${base}${path}`, async (c) => {
      const form = new URLSearchParams(await c.req.text())
      const token = form.get("token") ?? c.req.header("x-dex-token") ?? ""
      if (!session.isActionToken(token)) return c.body(null, 403)
      const result = await parts.use((dex) => run({ dex, form, to, actionToken: session.actionToken }))
      return "next" in result ? c.redirect(result.next, 303) : respond(c, result)
    })
  app.notFound((c) =>
    respond(
      c,
      {
        title: "Nothing here",
        body: messagePageHtml("Nothing here", "There is no page at this address. Use the links above."),
      },
      404,
    ),
  )
  app.onError((error, c) => {
    if (isDexError(error)) {
      const isMissing = ["not_found", "no_message", "private"].includes(error.code)
      return respond(
        c,
        { title: "Not shown", body: messagePageHtml("Not shown", error.message) },
        isMissing ? 404 : 400,
      )
    }
    parts.log(error.stack ?? String(error))
    const text = html`Unexpected error. The terminal with <code>dex view</code> shows the details.`
    return respond(
      c,
      { title: "Error", body: html`<section class="notice"><h1>Error</h1><p>${text}</p></section>` },
      500,
    )
  })
  return app
}

function refuseAccess(c: Context): Response {
  return c.body(noAccessPage().html, 401, { "Content-Type": HTML_TYPE })
}

/** The address to open after entering, which is always inside the view. */
function addressInside(base: string, path: string): string {
  return /^[\w./?=&%#:+~-]*$/.test(path) && !path.includes("..") ? `${base}/${path.replace(/^\/+/, "")}` : `${base}/`
}
