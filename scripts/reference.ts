// Writes docs/reference.md from the declared tools. `npm run reference`; a test checks that it is current.
import { writeFileSync } from "node:fs"
import { install, uninstall } from "../src/cli/install.ts"
import { referencePage } from "../src/cli/reference.ts"
import { tools } from "../src/tools/index.ts"

writeFileSync(new URL("../docs/reference.md", import.meta.url), referencePage([...tools, install, uninstall] as never))
