import { type Html, html } from "../../render/html/html.ts"
import { learningLine } from "../layout.ts"
import type { PageRequest, ViewPage } from "../page.ts"

/** A placeholder for a slow section, which the page's script loads. Without JavaScript it is a link. */
export function lateSection(title: string, address: string, size: "tall" | "" = ""): Html {
  const part = `${address}${address.includes("?") ? "&" : "?"}part=1`
  return html`<section class="late ${size}" data-late="${part}"><h2>${title}</h2><p class="none"><a href="${address}">Show</a></p></section>`
}

/** The content of a slow section: a fragment for the open page, or a page of its own. */
export function sectionPage(request: PageRequest, title: string, content: Html, links?: Html): ViewPage {
  const isPart = request.query.has("part")
  const learningAttribute = request.isLearning() && html` data-learning="${request.address}"`
  const body = isPart
    ? html`<section${learningAttribute}><header><h2>${title}</h2>${links}</header>${request.isLearning() && learningLine()}${content}</section>`
    : html`<div class="home"><header class="title"><h1>${title}</h1></header><section>${links}${content}</section></div>`
  return { title, section: "home", isPart, body }
}

/** A slow section without content. The open page leaves it out; a page of its own says why. */
export function emptySection(request: PageRequest, title: string, reason: string): ViewPage {
  if (request.isLearning()) return sectionPage(request, title, html``)
  if (request.query.has("part")) return { title, isPart: true, body: html`` }
  return sectionPage(request, title, html`<p class="none">${reason}</p>`)
}

/** The period in the address. */
export function requestedRange(query: URLSearchParams): { from?: string; to?: string } {
  const [from, to] = [query.get("from") ?? "", query.get("to") ?? ""]
  return { from: from !== "" ? from : undefined, to: to !== "" ? to : undefined }
}

/** Links to the same page with another choice. */
export function choiceLinks(
  names: readonly (readonly [value: string, title: string])[],
  chosen: string,
  addressOf: (value: string) => string,
  label: string,
): Html {
  const links = names.map(
    ([value, title]) =>
      html`<a href="${addressOf(value)}"${value === chosen && html` aria-current="true"`}>${title}</a>`,
  )
  return html`<nav class="choices" aria-label="${label}">${links}</nav>`
}
