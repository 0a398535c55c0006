import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { type Html, html } from "../render/html/html.ts"
import { builtFolder } from "../render/html/page-style.ts"
import type { Addresses, ViewPage } from "./page.ts"

const SECTIONS = [
  ["home", "Home"],
  ["find", "Find"],
  ["usage", "Usage"],
] as const

/** The complete HTML document of a page. */
export function documentHtml(
  page: ViewPage,
  to: Addresses,
  assets: Assets,
  actionToken: string,
  isLearning = false,
): Html {
  const links = { home: to.home(), find: to.find(), usage: to.usage() }
  const nav = SECTIONS.map(
    ([name, title]) =>
      html`<a href="${links[name]}"${page.section === name && html` aria-current="page"`}>${title}</a>`,
  )
  const hiddenInputs = Object.entries(page.hiddenFields ?? {}).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="dex-base" content="${to.base}">
<meta name="dex-token" content="${actionToken}">
<title>${page.title} · dex</title>
<link rel="icon" href="${to.asset(assets.icon)}">
<link rel="stylesheet" href="${to.asset(assets.style)}">
<script type="module" src="${to.asset(assets.script)}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="${links.home}">dex</a>
<nav aria-label="Pages">${nav}</nav>
<form class="search" action="${to.find()}" role="search"><input type="search" name="q" value="${page.words ?? ""}" placeholder="Search everything" aria-label="Search everything" autocomplete="off" spellcheck="false"><kbd aria-hidden="true">/</kbd>${hiddenInputs}</form>
</header>
<main id="main" tabindex="-1"${isLearning && html` data-learning=""`}>${isLearning && learningLine()}${page.body}</main>
<p id="announcement" class="announcement" role="status"></p>
</body>
</html>`
}

/**
 * A line that the page's script fills with the progress of learning. The script reloads the part with this line when learning is
 * done.
 */
export function learningLine(): Html {
  return html`<p class="note learning">dex is learning from your conversations<span data-learned></span>. This fills in when it is done.</p>`
}

/** A page with only a message: what happened, and what to do. */
export function messagePageHtml(title: string, text: string): Html {
  return html`<section class="notice"><h1>${title}</h1><p>${text}</p></section>`
}

/** The page for requests without the cookie. It reveals nothing. */
export function noAccessPage(): Html {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>dex</title></head><body><h1>This page is closed</h1><p>Run <code>dex view</code> in a terminal. It opens a new page, at a new address each time. To open the page of an old address, run <code>dex view ADDRESS</code>.</p></body></html>`
}

/** The page for a browser that was just let in. It opens this address at once. */
export function refreshPage(address: string): Html {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${address}"><title>dex</title></head><body><p><a href="${address}">Continue</a></p></body></html>`
}

/** The file names that pages use. Each contains the hash of its content, so that a browser can cache it forever. */
export type Assets = { style: string; script: string; icon: string; get(name: string): Asset | undefined }
type Asset = { type: string; bytes: Buffer<ArrayBuffer> }

const ASSET_FILES = {
  style: ["view-style.css", "text/css; charset=utf-8"],
  script: ["view.js", "text/javascript; charset=utf-8"],
  icon: ["view-icon.svg", "image/svg+xml"],
} as const

export function loadAssets(): Assets {
  const assets = new Map<string, Asset>()
  const addAsset = (kind: keyof typeof ASSET_FILES) => {
    const [file, type] = ASSET_FILES[kind]
    const bytes = Buffer.from(readFileSync(new URL(file, builtFolder())))
    const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12)
    const hashedName = file.replace(".", `-${hash}.`)
    assets.set(hashedName, { type, bytes })
    return hashedName
  }
  return {
    style: addAsset("style"),
    script: addAsset("script"),
    icon: addAsset("icon"),
    get: (name) => assets.get(name),
  }
}
