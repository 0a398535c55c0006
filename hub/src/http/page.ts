import { createHash } from "node:crypto"
import { html, trustedHtml } from "../../../src/render/html/html.ts"

const STYLE = `:root { color-scheme: light dark; --paper: #faf9f6; --ink: #1e1c19; --quiet: #625c53; --sunk: #f2f0ea }
@media (prefers-color-scheme: dark) { :root { --paper: #141517; --ink: #e6e3dd; --quiet: #a09a90; --sunk: #222428 } }
body { margin: 12vh auto; max-width: 36rem; padding: 0 1rem; background: var(--paper); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif }
pre { padding: .8rem 1rem; background: var(--sunk); overflow-x: auto }
p:last-child { color: var(--quiet) }`

/** The headers of the front page: no scripts, nothing from other hosts, and only the style above. */
export const PAGE_HEADERS = {
  "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
}

/** Shown to people who open the hub's address in a browser. It reveals nothing about the hub's contents. */
export function frontPage(address = "ADDRESS"): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>dex hub</title>
<style>${trustedHtml(STYLE)}</style>
</head>
<body>
<h1>dex hub</h1>
<p>This is a team's memory: the conversations with coding agents that its members chose to share. Log in from a terminal:</p>
<pre>dex hub login ${address}</pre>
<p>Nothing is shared by logging in. Run <code>dex hub share --dry-run</code> inside a project to see what would be sent.</p>
</body>
</html>
`.html
}
