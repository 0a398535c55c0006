import hljs from "highlight.js/lib/core"
import bash from "highlight.js/lib/languages/bash"
import cpp from "highlight.js/lib/languages/cpp"
import diff from "highlight.js/lib/languages/diff"
import go from "highlight.js/lib/languages/go"
import ini from "highlight.js/lib/languages/ini"
import java from "highlight.js/lib/languages/java"
import json from "highlight.js/lib/languages/json"
import python from "highlight.js/lib/languages/python"
import ruby from "highlight.js/lib/languages/ruby"
import rust from "highlight.js/lib/languages/rust"
import sql from "highlight.js/lib/languages/sql"
import typescript from "highlight.js/lib/languages/typescript"
import xml from "highlight.js/lib/languages/xml"
import yaml from "highlight.js/lib/languages/yaml"
import { type Screen, styled } from "./screen.ts"
import { type Style, safe } from "./terminal.ts"

const LANGUAGES = {
  bash,
  cpp,
  diff,
  go,
  ini,
  java,
  json,
  python,
  ruby,
  rust,
  sql,
  typescript,
  xml,
  yaml,
}
/** Above this it is a file rather than an example, and colours take longer than reading. */
const MOST_CHARS = 30_000

/** Code as lines, coloured where its language is known. */
export function codeLines(code: string, language: string, screen: Screen): string[] {
  const text = safe(code).replaceAll("\t", "    ").replace(/\n+$/, "")
  const name = language.toLowerCase()
  if (!screen.color || text.length > MOST_CHARS || !isKnown(name)) return text.split("\n")
  return coloured(hljs.highlight(text, { language: name, ignoreIllegals: true }).value, screen).split("\n")
}

let isReady = false

/** Languages are described to the library when the first code is shown. */
function isKnown(name: string): boolean {
  if (!isReady) {
    for (const [language, define] of Object.entries(LANGUAGES)) hljs.registerLanguage(language, define)
    // What TypeScript knows is more than JavaScript, and one of them is enough to carry.
    hljs.registerAliases(["js", "jsx", "mjs", "cjs", "javascript"], { languageName: "typescript" })
  }
  isReady = true
  return hljs.getLanguage(name) !== undefined
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
