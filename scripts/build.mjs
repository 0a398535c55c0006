import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { bundle } from "./bundle.mjs"

const { version } = JSON.parse(readFileSync("package.json", "utf8"))
rmSync("dist", { recursive: true, force: true })
const outputs = await bundle({ outdir: "dist", version })
chmodSync("dist/dex.js", 0o755)
writeFileSync("dist/THIRD_PARTY_LICENSES.txt", licences(outputs))
const bytes = Object.values(outputs).reduce((sum, output) => sum + output.bytes, 0)
console.log(`dist: ${Object.keys(outputs).length} files, ${(bytes / 1024).toFixed(0)} kB`)

/** The licences of what is bundled travel with it. */
function licences(outputs) {
  const inputs = Object.values(outputs).flatMap((output) => Object.keys(output.inputs))
  const packages = new Set(inputs.flatMap((path) => /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []))
  return [...packages]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
      return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8").trim() : ""}\n`
    })
    .join("\n---\n\n")
}
