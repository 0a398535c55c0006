import { type Inline, type MarkdownBlock, markdownPieces, sourceOf, type Table } from "../markdown-pieces.ts"
import { visibleText } from "../visible.ts"
import { codeHtml } from "./code-html.ts"
import { type Html, html } from "./html.ts"

/**
 * Markdown as HTML. Images are not loaded, HTML in the text is escaped, and a link shows its target. Line breaks are kept,
 * because a prompt is often a log or a list without marks.
 */
export function markdownHtml(text: string): Html {
  const pieces = [...markdownPieces(visibleText(text))].map((piece) => {
    if (piece.type === "code") return codeHtml(piece.text, piece.language)
    return piece.type === "plain" ? plainHtml(piece.text) : html`${blocks(piece.blocks, piece.source)}`
  })
  return html`${pieces}`
}

export function plainHtml(text: string): Html {
  return html`<pre class="plain">${text}</pre>`
}

/** The deepest nesting that is rendered. Deeper blocks are shown as they were written. */
const MAX_DEPTH = 40

function blocks(children: readonly MarkdownBlock[], source: string, depth = 0): Html[] {
  return children.map((child) => block(child, source, depth))
}

function block(node: MarkdownBlock, source: string, depth: number): Html {
  if (depth > MAX_DEPTH) return plainHtml(sourceOf(node, source))
  switch (node.type) {
    case "paragraph":
      return html`<p>${inlines(node.children)}</p>`
    case "heading":
      return html`<p class="heading level-${node.depth}">${inlines(node.children)}</p>`
    case "code":
      return codeHtml(node.value, node.lang ?? "")
    case "blockquote":
      return html`<blockquote>${blocks(node.children, source, depth + 1)}</blockquote>`
    case "list": {
      const items = node.children.map(
        ({ checked, children }) =>
          html`<li>${checked != null && html`<span class="box">${checked ? "☑" : "☐"}</span> `}${blocks(children, source, depth + 1)}</li>`,
      )
      return node.ordered ? html`<ol start="${node.start ?? 1}">${items}</ol>` : html`<ul>${items}</ul>`
    }
    case "table":
      return table(node)
    case "thematicBreak":
      return html`<hr>`
    default:
      return plainHtml(sourceOf(node, source))
  }
}

function table({ children: [head, ...rows] }: Table): Html {
  const cells = (row: Table["children"][number] | undefined) =>
    row?.children.map(({ children }) => inlines(children)) ?? []
  return html`<table class="written"><thead><tr>${cells(head).map((cell) => html`<th>${cell}</th>`)}</tr></thead><tbody>${rows.map((row) => html`<tr>${cells(row).map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table>`
}

function inlines(nodes: readonly Inline[], depth = 0): Html[] {
  return nodes.map((node) => inline(node, depth))
}

function inline(node: Inline, depth: number): Html {
  const inner = () => ("children" in node && depth < MAX_DEPTH ? inlines(node.children as Inline[], depth + 1) : [])
  switch (node.type) {
    case "text":
    case "html":
      return html`${node.value}`
    case "inlineCode":
      return html`<code>${node.value}</code>`
    case "strong":
      return html`<strong>${inner()}</strong>`
    case "emphasis":
      return html`<em>${inner()}</em>`
    case "delete":
      return html`<del>${inner()}</del>`
    case "break":
      return html`\n`
    case "link":
      return link(node.url, inner(), wordsIn(node))
    case "image":
      return html`<span class="image">[image: ${node.alt || node.url}]</span>`
    case "footnoteReference":
      return html`[^${node.label ?? node.identifier}]`
    default:
      return html`${inner()}`
  }
}

/** A link, only to the web. If the text differs from the target, both are shown. */
function link(url: string, text: Html[], label: string): Html {
  const target = webAddress(url)
  if (target === undefined) return html`${text}${url !== label && html` <span class="to">(${url})</span>`}`
  const showsTarget = label === url || label === target.href
  return html`<a href="${target.href}" target="_blank" rel="noopener noreferrer">${text}</a>${!showsTarget && html` <span class="to">(${target.host})</span>`}`
}

function webAddress(url: string): URL | undefined {
  const address = URL.canParse(url) ? new URL(url) : undefined
  return address && /^https?:$/.test(address.protocol) && address.username === "" ? address : undefined
}

function wordsIn(node: Inline): string {
  if ("value" in node) return node.value
  return "children" in node ? (node.children as Inline[]).map(wordsIn).join("") : ""
}
