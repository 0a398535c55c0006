import { highlightCode } from "../highlight.ts"
import { visibleText } from "../visible.ts"
import { type Html, html, trustedHtml } from "./html.ts"

/** Code with a class for each kind of word, if its language is known. */
export function codeHtml(code: string, language: string): Html {
  return html`<pre class="code">${highlightedHtml(code.replace(/\n+$/, ""), language)}</pre>`
}

export function highlightedHtml(code: string, language: string): Html {
  const text = visibleText(code)
  const coloured = highlightCode(text, language)
  return coloured === undefined ? html`${text}` : trustedHtml(coloured)
}

const LANGUAGE_BY_EXTENSION: Record<string, string> = {
  sh: "bash",
  bash: "bash",
  zsh: "bash",
  c: "cpp",
  h: "cpp",
  cc: "cpp",
  cpp: "cpp",
  hpp: "cpp",
  go: "go",
  toml: "ini",
  ini: "ini",
  java: "java",
  kt: "java",
  json: "json",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sql: "sql",
  ts: "typescript",
  tsx: "typescript",
  mts: "typescript",
  js: "typescript",
  jsx: "typescript",
  mjs: "typescript",
  cjs: "typescript",
  html: "xml",
  xml: "xml",
  svg: "xml",
  vue: "xml",
  yml: "yaml",
  yaml: "yaml",
}

/** The language of a file, by its name; empty if unknown. */
export function languageOfFile(path: string): string {
  return LANGUAGE_BY_EXTENSION[/\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? ""] ?? ""
}

/** How many characters are coloured in one call. The library would take too long for a long file. */
const CHARS_AT_ONCE = 25_000

/** Coloured code as separate lines: a span across several lines is closed and opened again on each. */
export function highlightLines(lines: readonly string[], language: string): Html[] {
  const texts = lines.map((line) => visibleText(line).replace(/\n$/, "").replaceAll("\n", " "))
  const htmlLines: Html[] = []
  for (let from = 0, to = 0; from < texts.length; from = to) {
    let chars = 0
    do chars += texts[to++]!.length + 1
    while (to < texts.length && chars + texts[to]!.length < CHARS_AT_ONCE)
    const { html: coloured } = highlightedHtml(texts.slice(from, to).join("\n"), language)
    htmlLines.push(...separateLines(coloured))
  }
  return htmlLines
}

function separateLines(coloured: string): Html[] {
  const tags: string[] = []
  return coloured.split("\n").map((line) => {
    const openTags = tags.join("")
    for (const [tag] of line.matchAll(/<\/?span[^>]*>/g)) {
      if (tag === "</span>") tags.pop()
      else tags.push(tag)
    }
    return trustedHtml(`${openTags}${line}${"</span>".repeat(tags.length)}`)
  })
}
