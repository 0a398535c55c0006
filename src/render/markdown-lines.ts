import { highlightCode } from "./highlight.ts"
import {
  type Inline,
  type List,
  type MarkdownBlock,
  type MarkdownPiece,
  markdownPieces,
  sourceOf,
  type Table,
} from "./markdown-pieces.ts"
import { narrowScreen, type Screen, styleText } from "./screen.ts"
import { paint, type Style, safe, widthOf, wrap, wrapAfter, wrapLine } from "./terminal.ts"

/**
 * Markdown as lines for a terminal, none wider than the terminal. Line breaks are kept, because a prompt is often a log or a list
 * without list marks. On a terminal without colours, the marks of emphasis and code are kept. Every text is made safe after
 * parsing, because a character reference can produce characters that were removed before.
 */
export function markdownLines(text: string, screen: Screen): string[] {
  const lines: string[] = []
  for (const piece of markdownPieces(safe(text))) {
    const linesOfPiece = pieceLines(piece, screen)
    if (linesOfPiece.length === 0) continue
    if (lines.length > 0) lines.push("")
    lines.push(...linesOfPiece)
  }
  return lines
}

function pieceLines(piece: MarkdownPiece, screen: Screen): string[] {
  if (piece.type === "code") return codeBlock(piece.text, piece.language, screen)
  return piece.type === "plain"
    ? plainLines(piece.text, screen)
    : blocks(piece.blocks, { screen, source: piece.source })
}

/** Text that is not Markdown. Its line breaks are kept. */
export function plainLines(text: string, screen: Screen, ...styles: Style[]): string[] {
  return styleText(screen, text.replaceAll("\t", "    "), ...styles)
    .split("\n")
    .flatMap((line) => wrapLine(line, screen.columns))
}

type BlockContext = { screen: Screen; source: string }

function blocks(children: readonly MarkdownBlock[], context: BlockContext, isTight = false): string[] {
  const lines: string[] = []
  for (const child of children) {
    const linesOfBlock = block(child, context)
    if (linesOfBlock.length === 0) continue
    if (lines.length > 0 && !isTight) lines.push("")
    lines.push(...linesOfBlock)
  }
  return lines
}

function block(node: MarkdownBlock, context: BlockContext): string[] {
  const { screen, source } = context
  switch (node.type) {
    case "paragraph":
      return withBreaks(inlineTexts(node.children, screen), screen)
    case "heading":
      return withBreaks(
        `${paint(screen, "bold", `${"#".repeat(node.depth)} `)}${inlineTexts(node.children, screen, ["bold"])}`,
        screen,
      )
    case "code":
      return codeBlock(node.value, node.lang ?? "", screen)
    case "blockquote":
      return blocks(node.children, { ...context, screen: narrowScreen(screen, 2) }).map(
        (line) => `${paint(screen, "dim", screen.glyphs.bar)} ${line}`,
      )
    case "list":
      return listLines(node, context)
    case "table":
      return tableLines(node, screen)
    case "thematicBreak":
      return [paint(screen, "dim", screen.glyphs.rule.repeat(Math.min(screen.columns, 40)))]
    default:
      return plainLines(sourceOf(node, source), screen)
  }
}

function withBreaks(text: string, screen: Screen): string[] {
  return text.split("\n").flatMap((line) => (line === "" ? [""] : wrap(line, screen.columns)))
}

function codeBlock(code: string, language: string, screen: Screen): string[] {
  const lines = codeLines(code, language, screen)
  return lines.flatMap((line) => {
    const [lead = ""] = /^ */.exec(line)!
    if (widthOf(line) + 2 <= screen.columns) return [`  ${line}`]
    return wrapAfter(`  ${lead.slice(0, screen.columns / 2)}`, line.slice(lead.length), screen.columns)
  })
}

function listLines(list: List, context: BlockContext): string[] {
  const { screen } = context
  const items = list.children.map((item, i) => {
    const mark = list.ordered ? `${(list.start ?? 1) + i}.` : screen.glyphs.bullet
    const box = item.checked == null ? "" : item.checked ? "[x] " : "[ ] "
    const lead = `${mark} ${box}`
    const lines = blocks(item.children, { ...context, screen: narrowScreen(screen, widthOf(lead)) }, !item.spread)
    const indentation = " ".repeat(widthOf(lead))
    return [lead + (lines[0] ?? ""), ...lines.slice(1).map((line) => (line === "" ? "" : indentation + line))]
  })
  return items.flatMap((lines, i) => (i > 0 && list.spread ? ["", ...lines] : lines))
}

/** A table with aligned columns. If a row is wider than the screen, its widest cells are wrapped inside their columns. */
function tableLines(table: Table, screen: Screen): string[] {
  const rows = table.children.map((row, i) =>
    row.children.map((cell) => inlineTexts(cell.children, screen, i === 0 ? ["bold"] : []).replaceAll("\n", " ")),
  )
  const columnCount = Math.max(...rows.map((row) => row.length))
  const naturalWidths = Array.from({ length: columnCount }, (_, at) =>
    Math.max(1, ...rows.map((row) => widthOf(row[at] ?? ""))),
  )
  const textColumns = screen.columns - 3 * (columnCount - 1)
  if (textColumns < 6 * columnCount)
    return rows.flatMap((row) => wrap(row.join(` ${screen.glyphs.bar} `), screen.columns))
  const maxWidth = maxColumnWidth(naturalWidths, textColumns)
  const widths = naturalWidths.map((width) => Math.min(width, maxWidth))
  const separator = ` ${paint(screen, "dim", screen.glyphs.bar)} `
  const rule = paint(
    screen,
    "dim",
    widths.map((width) => screen.glyphs.rule.repeat(width)).join(screen.glyphs.rule.repeat(3)),
  )
  return rows.flatMap((row, i) => {
    const cells = widths.map((width, at) => wrap(row[at] ?? "", width))
    const height = Math.max(1, ...cells.map((lines) => lines.length))
    const lines = Array.from({ length: height }, (_, y) =>
      cells
        .map((cell, at) => padCell(cell[y] ?? "", widths[at]!))
        .join(separator)
        .trimEnd(),
    )
    return i === 0 ? [...lines, rule] : lines
  })
}

function padCell(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)))
}

/** The largest column width at which all columns fit. */
function maxColumnWidth(widths: number[], room: number): number {
  let limit = Math.max(...widths)
  while (limit > 6 && widths.reduce((sum, width) => sum + Math.min(width, limit), 0) > room) limit--
  return limit
}

function inlineTexts(nodes: readonly Inline[], screen: Screen, styles: Style[] = []): string {
  return nodes.map((node) => inlineText(node, screen, styles)).join("")
}

function inlineText(node: Inline, screen: Screen, styles: Style[]): string {
  const emphasise = (mark: string, children: readonly Inline[], style: Style) =>
    screen.color
      ? inlineTexts(children, screen, [...styles, style])
      : `${mark}${inlineTexts(children, screen, styles)}${mark}`
  switch (node.type) {
    case "text":
    case "html":
      return styleText(screen, node.value, ...styles)
    case "inlineCode":
      return screen.color ? styleText(screen, node.value, ...styles, "yellow") : `\`${safe(node.value)}\``
    case "strong":
      return emphasise("**", node.children, "bold")
    case "emphasis":
      return emphasise("*", node.children, "italic")
    case "delete":
      return emphasise("~~", node.children, "dim")
    case "break":
      return "\n"
    case "link": {
      const text = inlineTexts(node.children, screen, styles)
      const url = safe(node.url)
      const showsTarget =
        url === "" || inlineTexts(node.children, { ...screen, color: false }) === url.replace(/^mailto:/, "")
      return showsTarget ? text : `${text}${styleText(screen, ` (${url})`, "dim")}`
    }
    case "image":
      return styleText(screen, `[image: ${node.alt || node.url}]`, ...styles, "dim")
    case "footnoteReference":
      return styleText(screen, `[^${node.label ?? node.identifier}]`, ...styles)
    default:
      return "children" in node ? inlineTexts(node.children as Inline[], screen, styles) : ""
  }
}

/** Code as lines, coloured if its language is known. */
export function codeLines(code: string, language: string, screen: Screen): string[] {
  const text = safe(code).replaceAll("\t", "    ").replace(/\n+$/, "")
  const html = screen.color ? highlightCode(text, language) : undefined
  return (html === undefined ? text : colourHtml(html, screen)).split("\n")
}

/** Turns the HTML of highlight.js, in which all text is escaped, into coloured text. */
function colourHtml(html: string, screen: Screen): string {
  const styles: (Style | undefined)[] = []
  return html.replace(/<span class="([^"]*)">|<\/span>|[^<]+/g, (piece, classes: string | undefined) => {
    if (classes !== undefined) styles.push(styleOf(classes))
    else if (piece === "</span>") styles.pop()
    else {
      const style = styles.findLast((one) => one !== undefined)
      return styleText(screen, unescapeHtml(piece), ...(style ? [style] : []))
    }
    return ""
  })
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" }

function unescapeHtml(html: string): string {
  return html.replace(/&(amp|lt|gt|quot|#x27);/g, (_, name: string) => ENTITIES[name]!)
}

const STYLES: [pattern: RegExp, style: Style][] = [
  [/comment|quote|meta/, "dim"],
  [/addition|string|regexp|char/, "green"],
  [/deletion/, "red"],
  [/keyword|literal|selector-tag|name\b/, "magenta"],
  [/number|symbol|bullet|variable|attr/, "yellow"],
  [/title|section|function|class_|built_in|type/, "blue"],
]

function styleOf(classes: string): Style | undefined {
  return STYLES.find(([pattern]) => pattern.test(classes))?.[1]
}
