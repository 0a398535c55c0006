// Writes the Claude Code plugin and the Gemini CLI extension from the texts that `dex install` uses. `npm run plugins`; a test
// checks that they are current.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { pluginFiles } from "../src/integrations/plugins.ts"

const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const { version } = JSON.parse(readFileSync(at("package.json"), "utf8")) as { version: string }
for (const [path, content] of Object.entries(pluginFiles(version))) {
  mkdirSync(dirname(at(path)), { recursive: true })
  writeFileSync(at(path), typeof content === "string" ? content : `${JSON.stringify(content, undefined, 2)}\n`)
}
