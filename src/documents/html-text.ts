import type { DefaultTreeAdapterTypes } from "parse5"

export type Element = DefaultTreeAdapterTypes.Element
export type Child = DefaultTreeAdapterTypes.ChildNode

export const attribute = (node: Element, name: string): string | undefined =>
  node.attrs.find((attribute) => attribute.name === name)?.value

/**
 * Returns the text of an element on one line, with white space collapsed. If `code` is true, inline code is put in backticks.
 */
export function inlineText(node: Element, options: { code?: boolean; skip?: (node: Element) => boolean } = {}): string {
  const words: string[] = []
  walkNodes(node.childNodes, {
    text: (value) => words.push(value),
    enter: (inner) => {
      if (options.skip?.(inner)) return false
      if (inner.tagName === "img") words.push(attribute(inner, "alt") ?? "")
      if (options.code && CODE_TAGS.has(inner.tagName)) words.push("`")
      if (!INLINE_ELEMENTS.has(inner.tagName)) words.push(" ")
      return true
    },
    leave: (inner) => {
      if (options.code && CODE_TAGS.has(inner.tagName)) words.push("`")
      if (!INLINE_ELEMENTS.has(inner.tagName)) words.push(" ")
    },
  })
  return words
    .join("")
    .replace(/[ \t\n\f\r]+/g, " ")
    .trim()
}

/** Returns the text of a `pre` as a browser shows it, with a new line for each `br`, `div` and `p`. Omits line numbers. */
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
const INLINE_ELEMENTS = new Set(
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

/**
 * Walks through nodes in document order. Does not use recursion, because pages may be nested more deeply than the stack allows.
 */
export function walkNodes(nodes: Child[], visitor: Visitor): void {
  const openFrames: { nodes: Child[]; next: number; parent?: Element }[] = [{ nodes, next: 0 }]
  for (let frame = openFrames.at(-1); frame; frame = openFrames.at(-1)) {
    const node = frame.nodes[frame.next++]
    if (!node) {
      openFrames.pop()
      if (frame.parent) visitor.leave(frame.parent)
    } else if (node.nodeName === "#text") visitor.text((node as TextNode).value, node as TextNode)
    else if ("tagName" in node && visitor.enter(node))
      openFrames.push({ nodes: node.childNodes, next: 0, parent: node })
  }
}

type TextNode = Extract<Child, { nodeName: "#text" }>
