import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { licencesOf } from "../../scripts/licences.mjs"

// Makes hub/dist: `dex-hub` in one folder that needs only Node.

const root = fileURLToPath(new URL("../..", import.meta.url))
process.chdir(root)
const outdir = "hub/dist"
const { version } = JSON.parse(readFileSync("package.json", "utf8"))
rmSync(outdir, { recursive: true, force: true })
const { metafile } = await build({
  absWorkingDir: root,
  outdir,
  // Threads are looked up next to the file that starts them, so everything is in one folder.
  entryPoints: {
    "dex-hub": "hub/src/main.ts",
    thread: "hub/src/search/thread.ts",
    "check-thread": "hub/src/push/check-thread.ts",
  },
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22",
  // Only laptops parse code, and PostgreSQL's native client is never used.
  external: ["web-tree-sitter", "pg-native"],
  alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js", acorn: fileURLToPath(import.meta.resolve("acorn")) },
  banner: {
    js: "import{createRequire as hubRequire}from'node:module';const require=hubRequire(import.meta.url);",
  },
  define: { DEX_VERSION: JSON.stringify(version) },
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
})
const program = join(outdir, "dex-hub.js")
const text = readFileSync(program, "utf8")
if (!text.startsWith("#!")) writeFileSync(program, `#!/usr/bin/env node\n${text}`)
chmodSync(program, 0o755)
copyDriver()
const inputs = Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs))
writeFileSync(join(outdir, "THIRD_PARTY_LICENSES.txt"), licencesOf(inputs))
writeFileSync(join(outdir, "package.json"), `${JSON.stringify({ type: "module" })}\n`)
const bytes = Object.values(metafile.outputs).reduce((sum, output) => sum + output.bytes, 0)
console.log(`${outdir}: ${Object.keys(metafile.outputs).length} files, ${(bytes / 1024).toFixed(0)} kB`)

/** SQLite's native part, which opens the search index, for every Linux and for this machine. */
function copyDriver() {
  const from = dirname(fileURLToPath(import.meta.resolve("better-sqlite3/package.json")))
  const to = join(outdir, "node_modules/better-sqlite3")
  mkdirSync(join(to, "prebuilds"), { recursive: true })
  for (const file of ["package.json", "LICENSE"]) cpSync(join(from, file), join(to, file))
  for (const file of readdirSync(join(from, "prebuilds")))
    if (file.startsWith("linux") || file === `${process.platform}-${process.arch}.node`)
      cpSync(join(from, "prebuilds", file), join(to, "prebuilds", file))
}
