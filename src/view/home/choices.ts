import { type Html, html } from "../../render/html/html.ts"

/** The same page with another choice. */
export function choices(
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
