import {
  attribute,
  CODE_TAGS,
  type Element,
  inlineText,
  isLineNumber,
  preformattedText,
  walkNodes,
} from "./html-text.ts"
import type { DocumentBlock, Heading } from "./sections.ts"
import { headingText } from "./sections.ts"

/** Returns the readable text of elements as blocks, each with its range of lines in the file. Does not cut long blocks. */
export function blocksOfElements(
  roots: Element[],
  { isFullPage, lineAt }: { isFullPage: boolean; lineAt: (offset: number) => number },
): DocumentBlock[] {
  const blocks: DocumentBlock[] = []
  const layout = layoutTables(roots)
  const indents: Indent[] = []
  const lists: { ordered: boolean; next: number }[] = []
  let words: string[] = []
  let paragraphRange: LineRange | undefined
  let lastWasIndented = false

  for (const root of roots) {
    walkNodes([root], { text: addText, enter, leave })
    endParagraph()
  }
  return blocks

  function enter(node: Element): boolean {
    const name = node.tagName
    if (node !== roots[0] && isSkippedElement(node, isFullPage)) return false
    if (!BLOCK_TAGS.has(name)) {
      if (name === "br") words.push("\n")
      else if (name === "img") addWord(attribute(node, "alt") ?? "", node)
      else if (CODE_TAGS.has(name)) words.push("`")
      return true
    }
    endParagraph()
    if (/^h[1-6]$/.test(name)) addHeading(node)
    else if (name === "pre") addCode(node)
    else if (name === "table" && !layout.has(node)) addTable(node)
    else {
      if (name === "ul" || name === "ol" || name === "menu") lists.push(listOf(node))
      if (name === "li") indents.push({ first: markerOf(lists.at(-1)), rest: "  ", isUsed: false })
      if (name === "dd") indents.push({ first: "  ", rest: "  ", isUsed: false })
      if (name === "blockquote") indents.push({ first: "> ", rest: "> ", isUsed: false })
      return true
    }
    return false
  }

  function leave(node: Element): void {
    const name = node.tagName
    if (CODE_TAGS.has(name)) words.push("`")
    if (!BLOCK_TAGS.has(name)) return
    endParagraph()
    if (name === "ul" || name === "ol" || name === "menu") lists.pop()
    if (name === "li" || name === "dd" || name === "blockquote") indents.pop()
  }

  function addText(value: string, node: { sourceCodeLocation?: Location }): void {
    words.push(value.replace(/[ \t\n\f\r]+/g, " "))
    const location = node.sourceCodeLocation
    if (!location || !/[^ \t\n\f\r]/.test(value)) return
    const breaksBefore = countLineBreaks(/^[ \t\n\f\r]*/.exec(value)![0])
    const breaksAfter = countLineBreaks(value.slice(value.trimEnd().length))
    const end = lineAt(location.endOffset)
    const firstLine = Math.min(
      lineAt(location.startOffset) + breaksBefore,
      lineAt(Math.max(location.startOffset, location.endOffset - 1)),
    )
    extendParagraph({ first_line: firstLine, last_line: Math.max(firstLine, end - breaksAfter) })
  }

  function addWord(word: string, node: Element): void {
    if (!word) return
    words.push(word)
    extendParagraph(lineRangeOf(node))
  }

  function lineRangeOf(node: Element): LineRange {
    const location = node.sourceCodeLocation ?? { startOffset: 0, endOffset: 0 }
    return {
      first_line: lineAt(location.startOffset),
      last_line: lineAt(Math.max(location.startOffset, location.endOffset - 1)),
    }
  }

  function extendParagraph({ first_line, last_line }: LineRange): void {
    paragraphRange = {
      first_line: Math.min(paragraphRange?.first_line ?? first_line, first_line),
      last_line: Math.max(paragraphRange?.last_line ?? last_line, last_line),
    }
  }

  function endParagraph(): void {
    const text = words
      .join("")
      .replace(/ {2,}/g, " ")
      .replace(/ ?\n ?/g, "\n")
      .replace(/^`+ ?`+$/, "")
      .trim()
    if (text && paragraphRange) addBlock(text, paragraphRange)
    words = []
    paragraphRange = undefined
  }

  function addHeading(node: Element): void {
    const text = headingText(
      inlineText(node, { skip: (inner) => isSkippedElement(inner, false) || isPermalink(inner) }),
    )
    if (!text) return
    const level = Number(node.tagName[1])
    const heading: Heading = { text, level, anchor: anchorOf(node) }
    blocks.push({ text: `${"#".repeat(level)} ${text}`, gap: "\n\n", ...lineRangeOf(node), heading })
    lastWasIndented = false
  }

  function addCode(node: Element): void {
    const code = preformattedText(node)
    if (!code.trim()) return
    const longestFence = Math.max(2, ...(code.match(/`{3,}/g)?.slice(0, 1_000) ?? []).map(({ length }) => length))
    const fence = "`".repeat(Math.min(longestFence, 100) + 1)
    addBlock(`${fence}${languageOf(node)}\n${code}\n${fence}`, lineRangeOf(node))
  }

  function addTable(table: Element): void {
    const rows: { cells: string[]; isHead: boolean; lineRange: LineRange }[] = []
    walkNodes(table.childNodes, {
      text: () => {},
      enter: (node) => {
        if (isSkippedElement(node, false)) return false
        if (node.tagName === "tr") rows.push({ cells: [], isHead: false, lineRange: lineRangeOf(node) })
        const isCell = node.tagName === "td" || node.tagName === "th"
        if (!isCell && node.tagName !== "caption") return true
        const text = inlineText(node, { code: true, skip: (inner) => isSkippedElement(inner, false) })
        if (!isCell) addBlock(text, lineRangeOf(node))
        rows.at(-1)?.cells.push(text)
        if (node.tagName === "th" && rows.length === 1) rows[0]!.isHead = true
        return false
      },
      leave: () => {},
    })
    for (const [i, { cells, isHead, lineRange }] of rows.filter(({ cells }) => cells.some(Boolean)).entries()) {
      const rule = isHead ? `\n|${" --- |".repeat(cells.length)}` : ""
      addBlock(`| ${cells.join(" | ")} |${rule}`, lineRange, i > 0)
    }
  }

  function addBlock(text: string, lineRange: LineRange, isJoined = false): void {
    if (!text) return
    const visibleIndents = indents.slice(0, MAX_INDENTS)
    const indented = text.split("\n").map((line, i) => {
      const prefix = visibleIndents.map((indent) => (i === 0 && !indent.isUsed ? indent.first : indent.rest)).join("")
      return `${prefix}${line}`
    })
    for (const indent of visibleIndents) indent.isUsed = true
    const gap = isJoined || (lastWasIndented && visibleIndents.length > 0) ? "\n" : "\n\n"
    blocks.push({ text: indented.join("\n"), gap, ...lineRange })
    lastWasIndented = visibleIndents.length > 0
  }
}

type Location = { startOffset: number; endOffset: number } | null
type LineRange = { first_line: number; last_line: number }
/** The prefixes of an indented element's lines: `first`, such as a list marker, for its first line, and `rest` for all others. */
type Indent = { first: string; rest: string; isUsed: boolean }

const MAX_INDENTS = 8

const BLOCK_TAGS = new Set(
  "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul".split(
    " ",
  ),
)
const IGNORED_TAGS = new Set(
  "nav footer script style template noscript svg iframe object canvas audio video button input textarea select".split(
    " ",
  ),
)
const FRAME_TAGS = new Set(["header", "aside"])

/**
 * Returns true for an element whose text is not read. If `isFullPage`, that includes headers and asides, because outside the main
 * content they usually belong to the site.
 */
export function isSkippedElement(node: Element, isFullPage: boolean): boolean {
  return (
    IGNORED_TAGS.has(node.tagName) ||
    (isFullPage && FRAME_TAGS.has(node.tagName)) ||
    node.attrs.some(({ name, value }) => name === "hidden" || (name === "aria-hidden" && value === "true")) ||
    ((node.tagName === "td" || node.tagName === "span") && isLineNumber(node))
  )
}

/** Finds tables that are used only for layout, which dex recognises by the code, headings or tables inside them. */
function layoutTables(roots: Element[]): Set<Element> {
  const layout = new Set<Element>()
  const tables: Element[] = []
  walkNodes(roots, {
    text: () => {},
    enter: (node) => {
      const outerTable = tables.at(-1)
      if (outerTable && /^(pre|table|h[1-6])$/.test(node.tagName)) layout.add(outerTable)
      if (node.tagName === "table") tables.push(node)
      return true
    },
    leave: (node) => {
      if (node.tagName === "table") tables.pop()
    },
  })
  return layout
}

const countLineBreaks = (space: string): number => space.split("\n").length - 1

/** Returns the id of a heading, of an element inside it, or of the section that it opens. */
function anchorOf(node: Element): string | undefined {
  const innerAnchor = node.childNodes.find(
    (child) => "tagName" in child && (attribute(child, "id") || attribute(child, "name")),
  )
  const parent = node.parentNode
  const sectionId =
    parent && "tagName" in parent && parent.childNodes.find((child) => "tagName" in child) === node
      ? /^(section|div)$/.test(parent.tagName) && attribute(parent, "id")
      : undefined
  const innerId =
    innerAnchor && "tagName" in innerAnchor
      ? (attribute(innerAnchor, "id") ?? attribute(innerAnchor, "name"))
      : undefined
  return [attribute(node, "id"), innerId, sectionId].find(
    (id): id is string => Boolean(id) && /^\S{1,200}$/u.test(String(id)),
  )
}

function isPermalink(node: Element): boolean {
  if (node.tagName !== "a") return false
  const text = inlineText(node)
  return text === "" || /^[#¶§🔗\u200b]{1,2}$/u.test(text)
}

function languageOf(pre: Element): string {
  const code = pre.childNodes.find((child) => "tagName" in child && child.tagName === "code") as Element | undefined
  const parent = pre.parentNode && "tagName" in pre.parentNode ? pre.parentNode : undefined
  const grandparent = parent?.parentNode && "tagName" in parent.parentNode ? parent.parentNode : undefined
  for (const node of [code, pre, parent, grandparent]) {
    if (!node) continue
    const dataLanguage = attribute(node, "data-lang") ?? attribute(node, "data-language")
    const classes = attribute(node, "class")?.slice(0, 500) ?? ""
    const language =
      dataLanguage ?? /(?:^|\s)(?:language|lang|highlight-source|highlight)-([\w+#.-]+)/.exec(classes)?.[1]
    if (language && /^[\w+#.-]{1,30}$/.test(language) && !/^(default|notranslate|none)$/.test(language)) return language
  }
  return ""
}

function listOf(node: Element): { ordered: boolean; next: number } {
  const start = Number.parseInt(attribute(node, "start") ?? "1", 10)
  return { ordered: node.tagName === "ol", next: Number.isSafeInteger(start) ? start : 1 }
}

function markerOf(list: { ordered: boolean; next: number } | undefined): string {
  return list?.ordered ? `${list.next++}. ` : "- "
}
