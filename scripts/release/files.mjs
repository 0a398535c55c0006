// Makes the files of a release: what is published to npm, what is attached to the release, and their checksums.
// `npm run release:files -- --to <folder>`. `--only npm` makes no archives, which take a minute each and download Node. Publishes
// nothing. The same commit always makes the same files.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { changesOf } from "../release-version.mjs"
import { archiveFor, mcpBundle } from "./bundles.mjs"
import { channelFiles, sha256 } from "./channels.mjs"
import { npmPackage } from "./npm-package.mjs"
import { sbomOf } from "./sbom.mjs"
import { SYSTEMS } from "./systems.mjs"
import { vsix } from "./vsix.mjs"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))
const { to, only } = parseArgs({
  options: { to: { type: "string", default: "release" }, only: { type: "string" } },
}).values
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"))
/** @type {string[]} */
const sums = []
mkdirSync(to, { recursive: true })

write(`dexctx-${version}.tgz`, npmPackage(ROOT))
write(`dexctx-${version}.cdx.json`, Buffer.from(`${JSON.stringify(sbomOf(ROOT), undefined, 2)}\n`))
write("NOTES.md", Buffer.from(`${changesOf(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), version)}\n`))
if (only !== "npm") {
  /** @type {Record<string, Buffer>} */
  const archives = {}
  for (const system of /** @type {import("./systems.mjs").System[]} */ (Object.keys(SYSTEMS))) {
    const { name, bytes } = archiveFor(ROOT, system)
    archives[name] = bytes
    write(name, bytes)
  }
  write(`dexctx-${version}.mcpb`, mcpBundle(ROOT))
  write(`dexctx-${version}.vsix`, vsix(ROOT))
  for (const [name, bytes] of Object.entries(channelFiles(ROOT, archives))) write(name, bytes)
}
writeFileSync(join(to, "SHA256SUMS"), sums.join(""))

/** @param {string} name @param {Buffer} bytes */
function write(name, bytes) {
  writeFileSync(join(to, name), bytes)
  sums.push(`${sha256(bytes)}  ${name}\n`)
  console.log(`${String(bytes.length).padStart(10)} ${name}`)
}
