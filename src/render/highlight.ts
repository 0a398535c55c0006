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

const LANGUAGES = { bash, cpp, diff, go, ini, java, json, python, ruby, rust, sql, typescript, xml, yaml }
/** The maximum number of characters to colour. Longer code is a complete file, and colouring it takes too long. */
const MAX_CHARS = 30_000

/** Code as escaped HTML, with a span and a class around each coloured word. Undefined if the code cannot be coloured. */
export function highlightCode(code: string, language: string): string | undefined {
  const name = language.toLowerCase()
  if (code.length > MAX_CHARS || !isKnown(name)) return undefined
  return hljs.highlight(code, { language: name, ignoreIllegals: true }).value
}

let isReady = false

/** True if dex can colour this language. Registers the languages on the first call. */
function isKnown(name: string): boolean {
  if (!isReady) {
    for (const [language, define] of Object.entries(LANGUAGES)) hljs.registerLanguage(language, define)
    // TypeScript includes JavaScript, so one of them is enough.
    hljs.registerAliases(["js", "jsx", "mjs", "cjs", "javascript"], { languageName: "typescript" })
  }
  isReady = true
  return hljs.getLanguage(name) !== undefined
}
