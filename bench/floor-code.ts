// The least that any tool must do with this code: read every file and parse it. Argument: the folder.
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { Language, Parser } from "web-tree-sitter"
import { type LanguageId, languageOf, MAX_CODE_BYTES, whyNotCode } from "../src/code/languages.ts"
import { grammarFile } from "../src/code/parse.ts"
import { listCodeFiles } from "../src/ingest/project-files.ts"

const [folder] = process.argv.slice(2) as [string]
await Parser.init()
const parser = new Parser()
const languages = new Map<LanguageId, Language>()
let bytes = 0
for (const path of (await listCodeFiles(folder)).paths) {
  const file = join(folder, path)
  if (statSync(file).size > MAX_CODE_BYTES) continue
  const text = readFileSync(file, "utf8")
  if (whyNotCode(text)) continue
  const id = languageOf(path)!
  const language = languages.get(id) ?? (await Language.load(grammarFile(id)))
  languages.set(id, language)
  parser.setLanguage(language)
  parser.parse(text)!.delete()
  bytes += text.length
}
console.log(bytes)
