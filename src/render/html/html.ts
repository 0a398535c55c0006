import { visibleText } from "../visible.ts"

/** Text that is already HTML. Only this file creates it. */
export type Html = { readonly html: string }
export type HtmlValue = Html | string | number | false | undefined | readonly HtmlValue[]

/**
 * Builds HTML from a template. Only `Html` values are inserted unchanged. Other values are escaped and lose their hidden
 * characters, so they are safe between tags and in attributes with double quotes.
 */
export function html(strings: TemplateStringsArray, ...values: HtmlValue[]): Html {
  let text = strings[0]!
  for (const [i, value] of values.entries()) text += toHtmlText(value) + strings[i + 1]!
  return { html: text }
}

/** Marks HTML that a library has already escaped. */
export function trustedHtml(text: string): Html {
  return { html: text }
}

function toHtmlText(value: HtmlValue): string {
  if (value === undefined || value === false) return ""
  if (typeof value === "string") return escapeHtml(visibleText(value))
  if (typeof value === "number") return String(value)
  if (isList(value)) return value.map(toHtmlText).join("")
  return value.html
}

function isList(value: Html | readonly HtmlValue[]): value is readonly HtmlValue[] {
  return Array.isArray(value)
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!)
}
