import { localMinute } from "../../core/dates.ts"
import type { RemovedText } from "../../hub-client/for-others.ts"
import { outcomesOf } from "../../render/fold.ts"
import { html, trustedHtml } from "../../render/html/html.ts"
import { messageHtml } from "../../render/html/message-html.ts"
import { pageStyle } from "../../render/html/page-style.ts"
import { many } from "../../render/words.ts"
import type { SharedMessage } from "./redacted-again.ts"

export type SharedConversation = {
  title: string
  agent: string
  date: string
  /** The folder that is stripped from paths. */
  root: string
  messages: SharedMessage[]
  taken_out: RemovedText[]
}

/** Formats a conversation as a self-contained HTML file, which has no scripts and loads nothing. */
export function shareHtml(shared: SharedConversation): string {
  const { title, agent, date, messages, taken_out } = shared
  const options = { agent, root: shared.root, outcomes: outcomesOf(messages), maxChars: Number.POSITIVE_INFINITY }
  const renderedMessages = messages.map(({ number, role, parts, at }) =>
    messageHtml({ number, role, parts, facts: at === undefined ? [] : [localMinute(at)] }, options),
  )
  const removed = removedSecretLines(taken_out)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>${trustedHtml(pageStyle())}</style>
</head>
<body>
<main class="shared">
<header class="title"><h1>${title}</h1><p class="line"><span class="agent">${agent}</span><span>${date.slice(0, 10)}</span><span>${many(messages.length, "message")}</span></p></header>
<div class="messages">${renderedMessages.filter((rendered) => rendered !== undefined)}</div>
<footer><h2>Removed secrets</h2>${removed.length === 0 ? html`<p>No secret was found.</p>` : html`<ul>${removed.map((line) => html`<li>${line}</li>`)}</ul>`}<p class="note">Written by dex.</p></footer>
</main>
</body>
</html>
`.html
}

export function removedSecretLines(removed: RemovedText[]): string[] {
  return removed.map(
    ({ what, count, earlier }) =>
      `${what}: ${count} ×${earlier ? ", already removed when dex read the conversation" : ""}`,
  )
}
