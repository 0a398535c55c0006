import { DexError } from "../core/error.ts"
import { type Html, html } from "../render/html/html.ts"
import { many } from "../render/words.ts"
import type { Dex } from "../tools/context.ts"
import { forget, makePrivate } from "../tools/forget/forget.ts"
import { notes } from "../tools/note/note.ts"
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
]

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

function requireField(form: URLSearchParams, name: string): string {
  const value = form.get(name)?.trim()
  if (!value) throw new DexError("usage", `This form needs a ${name}.`)
  return value
}
