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
/** Above this it is a file rather than an example, and colours take longer than reading. */
const MOST_CHARS = 30_000

/** Code with a span of a class around each word that has a colour, all else escaped. Undefined: it is shown without colours. */
export function highlighted(code: string, language: string): string | undefined {
  const name = language.toLowerCase()
  if (code.length > MOST_CHARS || !isKnown(name)) return undefined
  return hljs.highlight(code, { language: name, ignoreIllegals: true }).value
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
