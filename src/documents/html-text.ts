import type { DefaultTreeAdapterTypes } from "parse5"

export type Element = DefaultTreeAdapterTypes.Element
export type Child = DefaultTreeAdapterTypes.ChildNode

export const attribute = (node: Element, name: string): string | undefined =>
  node.attrs.find((attribute) => attribute.name === name)?.value

/** The text of an element on one line, with white space collapsed. With `code`, code is in backticks. */
export function inlineText(node: Element, options: { code?: boolean; skip?: (node: Element) => boolean } = {}): string {
  const words: string[] = []
  walkNodes(node.childNodes, {
    text: (value) => words.push(value),
    enter: (inner) => {
      if (options.skip?.(inner)) return false
      if (inner.tagName === "img") words.push(attribute(inner, "alt") ?? "")
      if (options.code && CODE_TAGS.has(inner.tagName)) words.push("`")
      if (!INLINE_CODE_OR_STYLE.has(inner.tagName)) words.push(" ")
      return true
    },
    leave: (inner) => {
      if (options.code && CODE_TAGS.has(inner.tagName)) words.push("`")
      if (!INLINE_CODE_OR_STYLE.has(inner.tagName)) words.push(" ")
    },
  })
  return words
    .join("")
    .replace(/[ \t\n\f\r]+/g, " ")
    .trim()
}

/** The text of a `pre` as a browser shows it: without line numbers, with a line for each `br` and `div`. */
export function preformattedText(node: Element): string {
  const parts: string[] = []
  const endLine = () => {
    if (parts.length > 0 && !parts.at(-1)!.endsWith("\n")) parts.push("\n")
  }
  walkNodes(node.childNodes, {
    text: (value) => value && parts.push(value),
    enter: (inner) => {
      if (inner.tagName === "br") parts.push("\n")
      if (inner.tagName === "div" || inner.tagName === "p") endLine()
      return !isLineNumber(inner) && !["button", "script", "style", "svg"].includes(inner.tagName)
    },
    leave: (inner) => {
      if (inner.tagName === "div" || inner.tagName === "p") endLine()
    },
  })
  return parts.join("").replace(/\n$/, "").replace(/^\n/, "")
}

export function isLineNumber(node: Element): boolean {
  return /(?:^|\s)(?:linenos?|linenodiv|line-?numbers?|gutter|ln-num)(?:\s|$)/i.test(
    attribute(node, "class")?.slice(0, 500) ?? "",
  )
}

export const CODE_TAGS = new Set(["code", "kbd", "samp", "tt"])
const INLINE_CODE_OR_STYLE = new Set(
  "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark q ruby s samp small span strike strong sub sup time tt u var wbr".split(
    " ",
  ),
)

type Visitor = {
  text: (value: string, node: Extract<Child, { nodeName: "#text" }>) => void
  /** If this returns false, the children are skipped and `leave` is not called. */
  enter: (node: Element) => boolean
  leave: (node: Element) => void
}

/** Walks in document order, without recursion, because pages may nest deeper than the stack. */
export function walkNodes(nodes: Child[], visitor: Visitor): void {
  const open: { nodes: Child[]; next: number; of?: Element }[] = [{ nodes, next: 0 }]
  for (let frame = open.at(-1); frame; frame = open.at(-1)) {
    const node = frame.nodes[frame.next++]
    if (!node) {
      open.pop()
      if (frame.of) visitor.leave(frame.of)
    } else if (node.nodeName === "#text") visitor.text((node as TextNode).value, node as TextNode)
    else if ("tagName" in node && visitor.enter(node)) open.push({ nodes: node.childNodes, next: 0, of: node })
  }
}

type TextNode = Extract<Child, { nodeName: "#text" }>
