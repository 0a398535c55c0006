// The least that any tool must do with these documents: read every byte and parse it. Argument: the folder.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fromMarkdown } from "mdast-util-from-markdown"
import { gfmFromMarkdown } from "mdast-util-gfm"
import { gfm } from "micromark-extension-gfm"

const [folder] = process.argv.slice(2) as [string]
let nodes = 0
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue
  const tree = fromMarkdown(readFileSync(join(entry.parentPath, entry.name), "utf8"), {
    extensions: [gfm()],
    mdastExtensions: [gfmFromMarkdown()],
  })
  nodes += tree.children.length
}
console.log(nodes)
