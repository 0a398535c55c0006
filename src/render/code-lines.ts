import { highlighted } from "./highlight.ts"
import { type Screen, styled } from "./screen.ts"
import { type Style, safe } from "./terminal.ts"

/** Code as lines, coloured where its language is known. */
export function codeLines(code: string, language: string, screen: Screen): string[] {
  const text = safe(code).replaceAll("\t", "    ").replace(/\n+$/, "")
  const html = screen.color ? highlighted(text, language) : undefined
  return (html === undefined ? text : coloured(html, screen)).split("\n")
}

/** The library answers with HTML; all text in it is escaped. */
function coloured(html: string, screen: Screen): string {
  const open: (Style | undefined)[] = []
  return html.replace(/<span class="([^"]*)">|<\/span>|[^<]+/g, (piece, classes: string | undefined) => {
    if (classes !== undefined) open.push(styleOf(classes))
    else if (piece === "</span>") open.pop()
    else {
      const style = open.findLast((one) => one !== undefined)
      return styled(screen, unescaped(piece), ...(style ? [style] : []))
    }
    return ""
  })
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" }

function unescaped(html: string): string {
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
