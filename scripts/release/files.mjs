// Makes the files of a release: what is published to npm, what is attached to the release, and their checksums.
// `npm run release:files -- --to <folder>`. Publishes nothing. The same commit always makes the same files.
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { changesOf } from "../release-version.mjs"
import { npmPackage } from "./npm-package.mjs"
import { sbomOf } from "./sbom.mjs"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))
const { to } = parseArgs({ options: { to: { type: "string", default: "release" } } }).values
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"))

/** @type {Record<string, Buffer>} */
const files = {
  [`dexctx-${version}.tgz`]: npmPackage(ROOT),
  [`dexctx-${version}.cdx.json`]: Buffer.from(`${JSON.stringify(sbomOf(ROOT), undefined, 2)}\n`),
  "NOTES.md": Buffer.from(`${changesOf(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), version)}\n`),
}
const sums = Object.entries(files).map(
  ([name, bytes]) => `${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`,
)
mkdirSync(to, { recursive: true })
for (const [name, bytes] of Object.entries({ ...files, SHA256SUMS: Buffer.from(sums.join("")) })) {
  writeFileSync(join(to, name), bytes)
  console.log(`${String(bytes.length).padStart(10)} ${name}`)
}
