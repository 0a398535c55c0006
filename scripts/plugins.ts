// Writes the files that follow from package.json and from the texts that `dex install` uses: the version and the address in our other
// packages, the plugins, the skill, and the entries in marketplaces and in the MCP registry. `npm run plugins`; `npm version` runs it
// too. A test checks that they are current.
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { pluginFiles } from "../src/integrations/plugins.ts"
import { offeredTools } from "../src/serve/mcp/definitions.ts"
import { filesWithPackageFields, releaseOf } from "./package-fields.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const write = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

for (const [path, text] of Object.entries(filesWithPackageFields(root))) write(path, text)
for (const [path, content] of Object.entries(pluginFiles(releaseOf(root), offeredTools)))
  write(path, typeof content === "string" ? content : `${JSON.stringify(content, undefined, 2)}\n`)
