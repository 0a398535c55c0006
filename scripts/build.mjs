import { execFileSync } from "node:child_process"
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { isInKey, KEY_FILE, keyOfSources } from "./build-key.mjs"
import { bundle } from "./bundle.mjs"
import { licencesOf } from "./licences.mjs"

const { version } = JSON.parse(readFileSync("package.json", "utf8"))
// Computed first: files that change while this runs are built again.
const key = keyOfSources(process.cwd())
rmSync("dist", { recursive: true, force: true })
const outputs = await bundle({ outdir: "dist", version })
chmodSync("dist/dex.js", 0o755)
const inputs = Object.values(outputs).flatMap((output) => Object.keys(output.inputs))
const withFolder = inputs.filter((file) => file.includes(process.cwd()))
if (withFolder.length > 0) throw new Error(`Another folder would make other files: ${withFolder.join(", ")}`)
const unknown = inputs.filter((file) => !isInKey(file))
if (unknown.length > 0) throw new Error(`scripts/build-key.mjs must name what is built: ${unknown.join(", ")}`)
writeFileSync("dist/THIRD_PARTY_LICENSES.txt", licencesOf(inputs))
declare()
writeFileSync(KEY_FILE, key)
const bytes = Object.values(outputs).reduce((sum, output) => sum + output.bytes, 0)
console.log(`dist: ${Object.keys(outputs).length} files, ${(bytes / 1024).toFixed(0)} kB`)

/** The TypeScript declarations of the library: the tools' types from their declarations, the others as written. */
function declare() {
  const node = (...args) => execFileSync(process.execPath, args, { encoding: "utf8" })
  writeFileSync("dist/index.d.ts", node("scripts/run.mjs", "scripts/declarations.ts"))
  node("node_modules/typescript/bin/tsc", "-p", "scripts/tsconfig.declarations.json")
  for (const name of readdirSync("dist/types", { recursive: true })) {
    const file = join("dist/types", String(name))
    if (file.endsWith(".d.ts"))
      writeFileSync(file, readFileSync(file, "utf8").replace(/(from "\.[^"]*)\.ts"/g, '$1.js"'))
  }
}
