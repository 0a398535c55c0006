// Writes docs/reference.md from the declared tools. `npm run reference`; a test checks that it is current.
import { writeFileSync } from "node:fs"
import { commands } from "../src/cli/commands.ts"
import { referencePage } from "../src/cli/reference.ts"

writeFileSync(new URL("../docs/reference.md", import.meta.url), referencePage(commands.map(({ tool }) => tool)))
