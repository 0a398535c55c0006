import { html } from "../../render/html/html.ts"
import { nameForFile } from "../../tools/share/file-name.ts"
import { type ShareFormat, share } from "../../tools/share/share.ts"
import { askTool, type PageRoute } from "../page.ts"

const TYPES: Record<ShareFormat, [ending: string, type: string]> = {
  html: ["html", "text/html; charset=utf-8"],
  markdown: ["md", "text/markdown; charset=utf-8"],
}

/** The conversation as one file, as `dex share` writes it. */
export function exportPage(format: ShareFormat): PageRoute["render"] {
  return async ({ dex, params }) => {
    const { title, text = "" } = await askTool(dex, share, { id: params.ref ?? "", format, print: true })
    const [ending, type] = TYPES[format]
    return { title, body: html``, file: { name: `${nameForFile(title)}.${ending}`, type, text } }
  }
}
