import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { bundle } from "./bundle.mjs"
import { licencesOf } from "./licences.mjs"

const { version } = JSON.parse(readFileSync("package.json", "utf8"))
rmSync("dist", { recursive: true, force: true })
const outputs = await bundle({ outdir: "dist", version })
chmodSync("dist/dex.js", 0o755)
const inputs = Object.values(outputs).flatMap((output) => Object.keys(output.inputs))
writeFileSync("dist/THIRD_PARTY_LICENSES.txt", licencesOf(inputs))
const bytes = Object.values(outputs).reduce((sum, output) => sum + output.bytes, 0)
console.log(`dist: ${Object.keys(outputs).length} files, ${(bytes / 1024).toFixed(0)} kB`)
