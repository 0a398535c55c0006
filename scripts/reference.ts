// Writes docs/reference.md from the declared tools: `npm run reference`. With --check it writes nothing, and fails if the page is
// not current; a test checks the same.
import { readFileSync, writeFileSync } from "node:fs"
import { commands } from "../src/cli/commands.ts"
import { referencePage } from "../src/cli/reference.ts"

const file = new URL("../docs/reference.md", import.meta.url)
const page = referencePage(commands.map(({ tool }) => tool))
if (!process.argv.includes("--check")) writeFileSync(file, page)
else if (readFileSync(file, "utf8") !== page) {
  console.error("docs/reference.md is not what the commands declare. Run: npm run reference")
  process.exit(1)
}
