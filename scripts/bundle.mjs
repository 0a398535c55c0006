import { readFileSync, writeFileSync } from "node:fs"
import { relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { compiledAhead } from "./compile-ahead.mjs"

// Node takes longer to find twenty small modules than to run a search. So everything that reading commands need is one file,
// dist/main.js, and the rest stays in pieces that are loaded when a command needs them.
//
// The pieces have copies of the modules in dist/main.js, and of their state: an object that a module creates is another one there.
// So a module with state, such as a cache of what a database connection does, must not be loaded late by one that is not.

/**
 * Modules that are loaded with `import()` but needed by nearly every command that reads, so they are part of the first file.
 * Everything else is loaded late.
 */
const HOT = [
  /^src\/tools\/(list|search)\/run\.ts$/,
  /^src\/search\/forgive\.ts$/,
  /^src\/tools\/show\/run-show\.ts$/,
  /^src\/tools\/(embedder|unread)\.ts$/,
  /^src\/cli\/print\/(list|search|show)\.ts$/,
  /^src\/store\/(history\/sqlite-history|index\/search-index|knowledge\/topic-facts)\.ts$/,
  /^src\/learn\/changes\.ts$/,
]
/** The same for a sync that finds nothing new, and for the thread in which a server reads. */
const HOT_IN_SYNC = [
  /^src\/serve\/mcp\/serve-thread\.ts$/,
  /^src\/cli\/print\/keeping\.ts$/,
  /^src\/ingest\/sync-thread\.ts$/,
  /^src\/agents\/(connectors|claude-code\/connector)\.ts$/,
  /^src\/tools\/(embedder|learned|forget\/finish-forgetting|usage\/line-kept)\.ts$/,
  /^src\/suggest\/feedback\/observe-use\.ts$/,
  /^src\/redact\/redact\.ts$/,
  /^src\/store\/history\/(sqlite-history|rot\/(seal|heal|damage-list))\.ts$/,
  /^src\/store\/(index\/search-index|knowledge\/knowledge|spending\/spending-file|suggestions\/suggestions)\.ts$/,
  /^src\/store\/sqlite\/older-files\.ts$/,
]
/** The same for a server of MCP, until it has answered a search. */
const HOT_IN_SERVERS = [...HOT, /^src\/serve\/mcp\/serve\.ts$/]
/** The same for hooks, which have no time to look for another file. */
const HOT_IN_HOOKS = [...HOT, /^src\/agents\/hooks\.ts$/, /^src\/serve\/hooks\/late\.ts$/]
/**
 * The share of the pieces that must use a file before it becomes part of the shared file. With a smaller share, the shared file
 * becomes large for commands that need little of it: at a sixth of the pieces `dex mcp` took 1.12 times as long to start.
 */
const MANY_PIECES = 1 / 5
/** The entry points from which the first file chooses, each in one piece. */
const ENTRIES = {
  "src/cli/main.ts": "./main.js",
  "src/cli/usage-line.ts": "./usage-line.js",
  "src/serve/hooks/main.ts": "./hook.js",
  "src/tools/blame/run.ts": "./blame.js",
  "src/cli/commands.ts": "./commands.js",
  "src/cli/open-picker.ts": "./picker.js",
  "src/cli/quick-commands.ts": "./sync.js",
  "src/cli/serve.ts": "./serve.js",
}
const IS_OURS = /^(?:src|packages)\//
const coldName = (path) =>
  `cold/${path
    .replace(/^src\/|^packages\/|\.ts$/g, "")
    .replace("/src/", "/")
    .replaceAll("/", "-")}`

/**
 * @param {{ outdir: string, version: string, plugins?: import("esbuild").Plugin[] }} options
 * @returns the outputs of all bundles, as esbuild describes them
 */
export async function bundle({ outdir, version, plugins = [] }) {
  const common = {
    outdir,
    bundle: true,
    format: /** @type {const} */ ("esm"),
    platform: /** @type {const} */ ("node"),
    target: "node22",
    // This package finds its WebAssembly next to itself.
    external: ["web-tree-sitter"],
    alias: {
      // The CommonJS version loads its own files in a way that no bundler can follow.
      "jsonc-parser": "jsonc-parser/lib/esm/main.js",
      // One package requires acorn, another imports it: one copy is enough.
      acorn: fileURLToPath(import.meta.resolve("acorn")),
      "decode-named-character-reference": fileURLToPath(import.meta.resolve("./entities.mjs")),
    },
    // The database driver is CommonJS and loads Node's modules with `require`.
    banner: { js: "import{createRequire as dexRequire}from'node:module';const require=dexRequire(import.meta.url);" },
    define: { DEX_VERSION: JSON.stringify(version) },
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: /** @type {const} */ ("none"),
    metafile: /** @type {const} */ (true),
    logLevel: /** @type {const} */ ("warning"),
  }
  /** Modules that are not in these files, and so loaded late. @type {Set<string>} */
  const cold = new Set()
  const inOneFile = (/** @type {Record<string, string>} */ entryPoints, hot = HOT) =>
    buildWithout({ ...common, entryPoints }, { hot, cold, plugins: [withoutLocales, withoutAjv, ...plugins] })
  const main = await inOneFile({ main: "src/cli/main.ts" })
  const blame = await inOneFile({ blame: "src/tools/blame/run.ts" })
  const commands = await inOneFile({ commands: "src/cli/commands.ts" }, [])
  const picker = await inOneFile({ picker: "src/cli/open-picker.ts" }, [/^src\/store\/history\/sqlite-history\.ts$/])
  const sync = await inOneFile({ sync: "scripts/sync-entry.mjs" }, HOT_IN_SYNC)
  writeFileSync(`${outdir}/serve-thread.js`, 'import{startServeThread}from"./sync.js";await startServeThread()')
  const serve = await inOneFile({ serve: "src/cli/serve.ts" }, HOT_IN_SERVERS)
  const hook = await inOneFile({ hook: "src/serve/hooks/main.ts" }, HOT_IN_HOOKS)
  const first = await inOneFile({ dex: "src/cli/dex.ts" })
  const pieces = await inPieces({
    ...common,
    plugins: [withoutLocales, withoutAjv, ...plugins],
    splitting: true,
    chunkNames: "cold/[name]-[hash]",
    entryPoints: {
      "read-thread": "src/ingest/read-thread.ts",
      "store-thread": "src/ingest/store-thread.ts",
      "code-process": "src/ingest/code-process.ts",
      "document-process": "src/ingest/document-process.ts",
      "background-process": "src/app/background-process.ts",
      "helper-process": "src/embed/helper-process.ts",
      "look-up-process": "src/cli/picker/look-up-process.ts",
      "reader-process": "src/watch/reader-process.ts",
      index: "src/library/index.ts",
      agent: "src/library/agent.ts",
      testing: "src/testing/contract.ts",
      "cold/prompts": "@clack/prompts",
      ...Object.fromEntries([...cold].sort().map((path) => [coldName(path), path])),
    },
  })
  const line = await build({
    ...common,
    banner: {},
    plugins,
    entryPoints: { "usage-line": "src/cli/usage-line.ts" },
  })
  const page = await build({
    outdir: `${outdir}/view`,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
    loader: { ".svg": "copy" },
    assetNames: "[name]",
    entryPoints: {
      view: "src/view/client/view.ts",
      "view-style": "src/view/client/view.css",
      "view-icon": "src/view/client/view.svg",
    },
  })
  for (const name of ["main", "picker", "sync", "serve", "hook"]) rewrite(`${outdir}/${name}.js`, compiledAhead)
  const programs = [pieces, main, blame, commands, picker, sync, serve, hook, line, first].map(
    ({ metafile }) => metafile.outputs,
  )
  for (const path of programs.flatMap(Object.keys)) rewrite(path, inAscii)
  return Object.assign({}, ...programs, page.metafile.outputs)
}

/** @type {(file: string, change: (text: string) => string) => void} */
function rewrite(file, change) {
  const text = readFileSync(file, "utf8")
  const changed = change(text)
  if (changed !== text) writeFileSync(file, changed)
}

/**
 * esbuild leaves some characters in regular expressions. A single one that is not in Latin-1 doubles the memory of the whole text,
 * and V8 reads it more slowly. In `String.raw` this changes the text, but not what a regular expression made of it matches.
 * @param {string} text
 */
function inAscii(text) {
  return text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
}

/**
 * esbuild makes a file for each set of pieces that share something: hundreds, most of them below a kilobyte. Instead, what many
 * pieces share becomes one file.
 * @param {import("esbuild").BuildOptions} options
 */
async function inPieces(options) {
  const { metafile } = await build({ ...options, metafile: true, write: false })
  return build({ ...options, metafile: true, plugins: [loadTogether(sharedIn(metafile)), ...(options.plugins ?? [])] })
}

/**
 * The files that many pieces reach without an `import()`, and the pieces that reach some of them.
 * @param {import("esbuild").Metafile} metafile
 */
function sharedIn({ inputs, outputs }) {
  const pieces = Object.values(outputs).flatMap(({ entryPoint }) => entryPoint ?? [])
  const reached = new Map(pieces.map((piece) => [piece, reachedFrom(piece, inputs)]))
  const counts = new Map()
  for (const files of reached.values()) for (const file of files) counts.set(file, (counts.get(file) ?? 0) + 1)
  const shared = [...counts].flatMap(([file, count]) =>
    IS_OURS.test(file) && count >= pieces.length * MANY_PIECES ? file : [],
  )
  return { shared, users: pieces.filter((piece) => shared.some((file) => reached.get(piece).has(file))) }
}

/** @type {(piece: string, inputs: import("esbuild").Metafile["inputs"]) => Set<string>} */
function reachedFrom(piece, inputs) {
  const reached = new Set([piece])
  for (const file of reached)
    for (const { path, kind } of inputs[file].imports)
      if (kind !== "dynamic-import" && path in inputs) reached.add(path)
  return reached
}

/**
 * Each user is bundled as a module that also imports everything shared, so that esbuild has no reason to split it.
 * @type {(together: { shared: string[], users: string[] }) => import("esbuild").Plugin}
 */
const loadTogether = ({ shared, users }) => ({
  name: "load-together",
  setup(bundler) {
    const wrapped = new Set(users.map((file) => resolve(file)))
    const all = shared.map((file) => `import ${JSON.stringify(resolve(file))}`).join("\n")
    bundler.onResolve({ filter: /^dex:shared$/ }, ({ path }) => ({ path, namespace: "shared" }))
    bundler.onLoad({ filter: /./, namespace: "shared" }, () => ({ contents: all, resolveDir: "." }))
    bundler.onResolve({ filter: /^\.|^src\/|^packages\// }, ({ path: asked, kind, resolveDir }) => {
      if (!["entry-point", "dynamic-import"].includes(kind)) return undefined
      const path = resolve(kind === "entry-point" ? "." : resolveDir, asked)
      if (!wrapped.has(path)) return undefined
      // Relative, because esbuild hashes it: the same sources make the same files in every folder.
      return { path: relative(".", path).replaceAll("\\", "/"), namespace: "user" }
    })
    bundler.onLoad({ filter: /./, namespace: "user" }, ({ path }) => ({
      contents: `export * from ${JSON.stringify(resolve(path))}\nimport "dex:shared"`,
      resolveDir: ".",
    }))
  },
})

/**
 * zod imports its messages in fifty languages. dex speaks English.
 * @type {import("esbuild").Plugin}
 */
const withoutLocales = {
  name: "without-locales",
  setup(bundler) {
    bundler.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: "export {}" }))
  },
}

/**
 * The MCP SDK brings a validator of JSON Schema, 215 kB, which checks only what a client answers to a question of the server. dex asks
 * none, and checks its tools' inputs itself.
 * @type {import("esbuild").Plugin}
 */
const withoutAjv = {
  name: "without-ajv",
  setup(bundler) {
    bundler.onLoad({ filter: /[\\/]@modelcontextprotocol[\\/]server[\\/]dist[\\/]ajvProvider-[\w-]+\.mjs$/ }, () => ({
      contents: `export class n { getValidator() { throw new Error("dex asks clients nothing") } }`,
    }))
  },
}

/**
 * Builds one file of everything that is imported with `import ... from`, and of the hot modules. Other modules that it loads with
 * `import()` are added to `cold`. Modules that are imported both ways are part of the file: a second copy would have its own
 * state. Only a first build can tell.
 * @param {import("esbuild").BuildOptions} options
 * @param {{ hot: RegExp[], cold: Set<string>, plugins: import("esbuild").Plugin[] }} parts
 */
async function buildWithout(options, { hot, cold, plugins }) {
  const isHot = (/** @type {string} */ path) => hot.some((pattern) => pattern.test(path))
  const { metafile } = await build({
    ...options,
    metafile: true,
    write: false,
    plugins: [leaveOut((path) => !isHot(path)), ...plugins],
  })
  const [{ inputs }] = Object.values(metafile.outputs)
  const inFile = new Set(Object.keys(inputs).filter((path) => inputs[path].bytesInOutput > 0))
  const leaves = (/** @type {string} */ path) => {
    const isLeft = !isHot(path) && !inFile.has(path)
    if (isLeft && !(path in ENTRIES)) cold.add(path)
    return isLeft
  }
  return build({ ...options, metafile: true, plugins: [leaveOut(leaves), ...plugins] })
}

/** @type {(leaves: (path: string) => boolean) => import("esbuild").Plugin} */
const leaveOut = (leaves) => ({
  name: "leave-out",
  setup(bundler) {
    bundler.onResolve({ filter: /./ }, async (asked) => {
      if (asked.kind !== "dynamic-import" || asked.pluginData === "resolved") return undefined
      if (asked.path === "@clack/prompts") return { path: "./cold/prompts.js", external: true }
      const found = await bundler.resolve(asked.path, {
        kind: asked.kind,
        resolveDir: asked.resolveDir,
        importer: asked.importer,
        pluginData: "resolved",
      })
      const path = relative(".", found.path).replaceAll("\\", "/")
      if (found.external || !IS_OURS.test(path) || !leaves(path)) return undefined
      return { path: ENTRIES[path] ?? `./${coldName(path)}.js`, external: true }
    })
  },
})
