import { defaultTreeAdapter, parse } from "parse5"
import { blocksOfElements, isSkippedElement } from "./html-blocks.ts"
import { type Child, type Element, inlineText } from "./html-text.ts"
import type { ParsedDocument } from "./sections.ts"
import { headingText, lineFinder, titleOf, toSections } from "./sections.ts"

type Adapter = typeof defaultTreeAdapter

/**
 * Cuts the main content of a page, or the whole body if none is marked, into sections at its headings. Navigation, scripts and
 * hidden elements are ignored.
 */
export function parseHtml(text: string): ParsedDocument {
  const page = parse(text, { treeAdapter: boundedAdapter(), sourceCodeLocationInfo: true, scriptingEnabled: false })
  const content = findContent(page.childNodes)
  const lineAt = lineFinder(text) // the parser's own line numbers are wrong after a `&` at the end of a line
  const mainBlocks = content.main.length > 0 ? blocksOfElements(content.main, { isFullPage: false, lineAt }) : []
  const blocks = mainBlocks.length > 0 ? mainBlocks : blocksOfElements(content.body, { isFullPage: true, lineAt })
  const headings = blocks.flatMap(({ heading }) => heading ?? [])
  const title = titleOf(headings, content.title ? headingText(inlineText(content.title)) : "")
  return { title, sections: toSections(blocks), problems: [] }
}

const MAX_DEPTH = 512 // browsers have the same limit
const MAX_ELEMENTS = 300_000
const MAX_SEARCH_STEPS = 50_000_000

/**
 * Creates a tree adapter with limits. At each tag, the parser searches all elements that are still open and may reopen some, so
 * limits on their depth and number bound its time. Content that is moved out of a table has its own limit, because each move
 * searches the children of the table's parent.
 */
function boundedAdapter(): Adapter {
  let depth = 0
  let elementCount = 0
  let steps = 0
  const countSearchSteps = (children: Child[], node: Child) => {
    if (children.at(-1) !== node) steps += children.length
    if (steps > MAX_SEARCH_STEPS) throw new Error("its tables contain too much content that belongs outside them")
  }
  return {
    ...defaultTreeAdapter,
    onItemPush: () => {
      if (++depth > MAX_DEPTH) throw new Error(`it nests elements more than ${MAX_DEPTH} deep`)
    },
    onItemPop: () => {
      depth--
    },
    createElement: (name, namespace, attributes) => {
      if (++elementCount > MAX_ELEMENTS) throw new Error(`it has more than ${MAX_ELEMENTS} elements`)
      return defaultTreeAdapter.createElement(name, namespace, attributes)
    },
    insertBefore: (parent, node, reference) => {
      countSearchSteps(parent.childNodes, reference)
      defaultTreeAdapter.insertBefore(parent, node, reference)
    },
    insertTextBefore: (parent, text, reference) => {
      countSearchSteps(parent.childNodes, reference)
      defaultTreeAdapter.insertTextBefore(parent, text, reference)
    },
    detachNode: (node) => {
      if (node.parentNode) countSearchSteps(node.parentNode.childNodes, node)
      defaultTreeAdapter.detachNode(node)
    },
  } as Adapter
}

/**
 * Finds the main content: the first `main` element, otherwise the first element with the role `main`, otherwise all articles.
 * Also returns the body and the title.
 */
function findContent(nodes: Child[]): { main: Element[]; body: Element[]; title: Element | undefined } {
  const main: Element[] = []
  const elementsWithRole: Element[] = []
  const articles: Element[] = []
  const body: Element[] = []
  let title: Element | undefined
  const queue = nodes.map((node) => ({ node, inArticle: false })).reverse()
  for (let next = queue.pop(); next; next = queue.pop()) {
    const { node } = next
    if (!("tagName" in node) || (node.tagName !== "body" && isSkippedElement(node, false))) continue
    if (node.tagName === "main") main.push(node)
    if (node.tagName === "body") body.push(node)
    if (node.tagName === "title") title ??= node
    if (node.attrs.some(({ name, value }) => name === "role" && value === "main")) elementsWithRole.push(node)
    if (node.tagName === "article" && !next.inArticle) articles.push(node)
    const inArticle = next.inArticle || node.tagName === "article"
    for (let i = node.childNodes.length - 1; i >= 0; i--) queue.push({ node: node.childNodes[i]!, inArticle })
  }
  return {
    main: main.length > 0 ? main.slice(0, 1) : elementsWithRole.length > 0 ? elementsWithRole.slice(0, 1) : articles,
    body,
    title,
  }
}
