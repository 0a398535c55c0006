import { STAR_TAG } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"
import { syncWithThreads } from "../ingest/sync-thread.ts"
import { type Html, html } from "../render/html/html.ts"
import { many } from "../render/words.ts"
import type { Dex } from "../tools/context.ts"
import { forget, makePrivate } from "../tools/forget/forget.ts"
import { notes } from "../tools/note/note.ts"
import { resolveRef } from "../tools/resolve.ts"
import { messagePageHtml } from "./layout.ts"
import type { Addresses } from "./page.ts"
import { dexInProject, runToolForPage, type ViewPage } from "./page.ts"

type ActionRequest = { dex: Dex; form: URLSearchParams; to: Addresses; actionToken: string }

/** A change that a page can request. The request must contain the page's token. */
export type Action = { path: string; run(request: ActionRequest): Promise<ViewPage | { next: string }> }

/** A form whose button requests an action. */
export function actionForm(address: string, token: string, fields: Record<string, string>, inner: Html): Html {
  const hiddenInputs = Object.entries({ token, ...fields }).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  return html`<form class="action" method="post" action="${address}">${hiddenInputs}${inner}</form>`
}

export const actions: readonly Action[] = [
  { path: "/do/forget", run: forgetAction },
  { path: "/do/private", run: privateAction },
  { path: "/do/note", run: noteAction },
  { path: "/do/mark", run: markAction },
  { path: "/do/sync", run: syncAction },
]

export async function hasNoConversations(dex: Dex): Promise<boolean> {
  if (!dex.hasHistory()) return true
  const store = await dex.store()
  // A list leaves out private projects, and no sync counts what was imported.
  return ((await store.progress())?.total ?? 0) === 0 && (await store.list({ limit: 1, offset: 0 })).rows.length === 0
}

/** Shown instead of an empty history: a button that reads the agents' conversations. */
export function nothingYetHtml(to: Addresses, actionToken: string): Html {
  const button = actionForm(to.path("do/sync"), actionToken, {}, html`<button>Sync now</button>`)
  return html`<section class="notice"><h1>Nothing yet</h1><p>dex has not read any conversations yet. This button reads what your coding agents wrote on this machine, as <code>dex sync</code> does in a terminal.</p>${button}<p class="note">If nothing appears, <code>dex doctor</code> says where dex looked.</p></section>`
}

/** How long a person waits for the first conversations, in milliseconds. The rest is read while the page is open. */
const SYNC_MS = 3_000

async function syncAction({ dex, to }: ActionRequest): Promise<{ next: string }> {
  await syncWithThreads(await dex.syncDeps(), dex.home.index, { wait: true, deadline: Date.now() + SYNC_MS })
  return { next: to.home() }
}

/** Asks for confirmation first, because forgetting cannot be undone. */
async function forgetAction({ dex, form, to, actionToken }: ActionRequest): Promise<ViewPage> {
  const ref = requireField(form, "ref")
  const output = await runToolForPage(dex, forget, { ids: [ref], yes: form.get("yes") === "yes" })
  if (!output.asked) {
    const title = `${many(output.count, "conversation")} forgotten`
    return { title, body: messagePageHtml(title, "Deleted from the history, the index and the knowledge.") }
  }
  const rows = (output.conversations ?? []).map(
    ({ title, project, date, message_count }) =>
      html`<li>${title} <span class="facts">${project}, ${date.slice(0, 10)}, ${many(message_count, "message")}</span></li>`,
  )
  const confirmForm = actionForm(
    to.path("do/forget"),
    actionToken,
    { ref, yes: "yes" },
    html`<button>Delete permanently</button>`,
  )
  const body = html`<section class="notice"><h1>Delete permanently?</h1><p>dex will have no copy, and no later sync will restore it.</p><ul>${rows}</ul>${confirmForm} <a href="${to.read(ref)}">Keep it</a></section>`
  return { title: "Delete permanently?", body }
}

async function privateAction({ dex, form, to, actionToken }: ActionRequest): Promise<ViewPage> {
  const project = requireField(form, "project")
  const isOff = form.get("off") === "yes"
  if (!isOff && form.get("yes") !== "yes") {
    const title = "Make it private?"
    const confirmForm = actionForm(
      to.path("do/private"),
      actionToken,
      { project, yes: "yes" },
      html`<button>Make it private</button>`,
    )
    const body = html`<section class="notice"><h1>${title}</h1><p>From then on dex shows ${project} only if you ask inside that folder, also to your agents. Nothing is deleted, and you can undo it.</p>${confirmForm} <a href="${to.home()}">Leave it as it is</a></section>`
    return { title, body }
  }
  await runToolForPage(dex, makePrivate, { project, off: isOff || undefined })
  if (isOff) {
    const title = "No longer private"
    return { title, body: messagePageHtml(title, `${project} is shown everywhere again.`) }
  }
  const undo = actionForm(to.path("do/private"), actionToken, { project, off: "yes" }, html`<button>Undo</button>`)
  const body = html`<section class="notice"><h1>Private</h1><p>From now on dex shows ${project} only if you ask inside that folder.</p>${undo}</section>`
  return { title: "Private", body }
}

async function noteAction({ dex, form, to }: ActionRequest): Promise<ViewPage | { next: string }> {
  const project = requireField(form, "project")
  await runToolForPage(await dexInProject(dex, project), notes, { words: [requireField(form, "text")] })
  const ref = form.get("ref")
  return ref === null
    ? { title: "Saved", body: messagePageHtml("Saved", "The note was saved for this project.") }
    : { next: to.read(ref) }
}

/** Gives a conversation a star, or the title and the tags of the form. */
async function markAction({ dex, form, to }: ActionRequest): Promise<{ next: string }> {
  const ref = requireField(form, "ref")
  const { row } = await resolveRef(dex, ref)
  const star = form.get("star")
  const typedTags = (form.get("tags") ?? "").split(/[\s,]+/).filter((tag) => tag !== "")
  const marks =
    star === null
      ? {
          title: form.get("title")?.trim() ?? "",
          tag: typedTags,
          no_tag: row.tags?.filter((tag) => tag !== STAR_TAG && !typedTags.includes(tag)),
        }
      : { [star === "yes" ? "star" : "no_star"]: true }
  await runToolForPage(dex, notes, { words: [ref], ...marks })
  return { next: to.read(ref) }
}

function requireField(form: URLSearchParams, name: string): string {
  const value = form.get(name)?.trim()
  if (!value) throw new DexError("usage", `This form needs a ${name}.`)
  return value
}
