import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { compiledAhead } from "./compile-ahead.mjs"

// Node takes longer to find twenty small modules than to run a search. So what reading commands need is one file,
// dist/main.js, and everything else stays in pieces that are loaded when a command asks for them.

/** What only whoever reads an agent's sessions, or its settings, needs of it. */
const OF_AGENTS = readdirSync("src/agents")
  .flatMap((agent) =>
    ["connector.ts", "headless.ts", "hooks.ts", "wiring.ts"].map((file) => `src/agents/${agent}/${file}`),
  )
  .filter((file) => existsSync(file) && !file.includes("/kit/"))

/** Asked for by `import()` only, and not by a search, a list or a show. */
const COLD = [
  ...OF_AGENTS,
  "src/answers/ask.run.ts",
  "src/answers/chat.run.ts",
  "src/answers/digest.run.ts",
  "src/answers/map/cache.ts",
  "src/answers/map.run.ts",
  "src/answers/why.run.ts",
  "src/answers/rules.run.ts",
  "src/app/apart.ts",
  "src/app/sync-behind.ts",
  "src/cli/agree-to-agent.ts",
  "src/cli/ask-key.ts",
  "src/cli/chat/chat.ts",
  "src/cli/choose-wiring.ts",
  "src/cli/complete-values.ts",
  "src/cli/completions.ts",
  "src/cli/confirm-forgetting.ts",
  "src/cli/confirm-local-model.ts",
  "src/cli/confirm-service.ts",
  "src/cli/confirm-sharing.ts",
  "src/cli/confirm-wiring.ts",
  "src/cli/help.ts",
  "src/cli/home.ts",
  "src/cli/hub-login.ts",
  "src/cli/mcp.ts",
  "src/cli/pager.ts",
  "src/cli/picker/picker.ts",
  "src/cli/picker/read-conversation.ts",
  "src/cli/print/ask.ts",
  "src/cli/print/backup.ts",
  "src/cli/print/why.ts",
  "src/cli/print/digest.ts",
  "src/cli/print/docs.ts",
  "src/cli/print/eval.ts",
  "src/cli/print/decisions.ts",
  "src/cli/print/fix.ts",
  "src/cli/print/note.ts",
  "src/cli/print/install.ts",
  "src/cli/print/map.ts",
  "src/cli/print/reader.ts",
  "src/cli/print/suggest.ts",
  "src/cli/print/tests.ts",
  "src/cli/print/suggestions.ts",
  "src/cli/print/trace.ts",
  "src/cli/print/usage.ts",
  "src/cli/print/watch.ts",
  "src/cli/print/guide.ts",
  "src/cli/print/handover.ts",
  "src/cli/print/hub.ts",
  "src/cli/print/resume.ts",
  "src/cli/print/share.ts",
  "src/cli/progress.ts",
  "src/cli/serve.ts",
  "src/cli/view.ts",
  "src/cli/watch-run.ts",
  "src/cli/widget.ts",
  "src/code/parse.ts",
  "src/config/servers.ts",
  "src/agents/connectors.ts",
  "src/agents/outside.ts",
  "src/embed/local.ts",
  "src/embed/open-embedder.ts",
  "src/headless/agent-model.ts",
  "src/headless/choose.ts",
  "src/ingest/documents.ts",
  "src/ingest/embed-messages.ts",
  "src/redact/redact.ts",
  "src/ingest/project-code.ts",
  "src/ingest/sync-thread.ts",
  "src/integrations/check.ts",
  "src/integrations/watch-service.ts",
  "src/integrations/wiring.ts",
  "src/llm/model.ts",
  "src/search/forgive.ts",
  "src/search/hybrid.ts",
  "src/search/rerank.ts",
  "src/store/history/backup.ts",
  "src/store/history/collections.ts",
  "src/store/history/rot/damage-list.ts",
  "src/store/history/forget.ts",
  "src/store/history/rot/heal.ts",
  "src/store/history/import-history.ts",
  "src/store/history/rot/inspect.ts",
  "src/store/knowledge/knowledge.ts",
  "src/store/spending/spending-file.ts",
  "src/store/history/rot/mend.ts",
  "src/store/sqlite/other-formats.ts",
  "src/store/history/rot/seal.ts",
  "src/store/suggestions/suggestions.ts",
  "src/store/history/tombstones.ts",
  "src/store/index/vector-index.ts",
  "src/store/index/vectors.ts",
  "src/store/history/write-unit.ts",
  "src/suggest/feedback/observe-use.ts",
  "src/suggest/learn.ts",
  "src/tools/project-facts.ts",
  "src/tools/blame/run.ts",
  "src/tools/config/local-model.ts",
  "src/tools/config/run.ts",
  "src/tools/docs/run.ts",
  "src/tools/doctor/run.ts",
  "src/tools/eval/run.ts",
  "src/tools/decisions/run.ts",
  "src/tools/fix/run.ts",
  "src/tools/forget/run.ts",
  "src/tools/gc/run.ts",
  "src/tools/guide/run.ts",
  "src/tools/handover/run.ts",
  "src/tools/hub/ask-team.ts",
  "src/tools/hub/push-behind.ts",
  "src/tools/hub/run.ts",
  "src/tools/learned.ts",
  "src/tools/folder-to-open.ts",
  "src/tools/model.ts",
  "src/tools/mute/run.ts",
  "src/tools/note/run.ts",
  "src/tools/resume/run.ts",
  "src/tools/share/run.ts",
  "src/tools/share/share-html.ts",
  "src/tools/share/share-markdown.ts",
  "src/tools/sync/run-reindex.ts",
  "src/tools/doctor/repair.ts",
  "src/tools/sources/run.ts",
  "src/tools/suggest/run.ts",
  "src/tools/subscriptions/run.ts",
  "src/tools/suggestions/run.ts",
  "src/tools/docs/sync-collections.ts",
  "src/tools/tests/run.ts",
  "src/tools/trace/run.ts",
  "src/tools/traces/run.ts",
  "src/tools/usage/keep-line.ts",
  "src/tools/usage/run.ts",
  "src/trace/forget.ts",
  "src/store/history/around.ts",
  "src/store/history/rot/damage-list.ts",
  "src/store/history/rot/heal.ts",
  "src/store/history/rot/inspect.ts",
  "src/store/history/rot/mend.ts",
  "src/store/history/project-paths.ts",
  "src/store/sqlite/scratch.ts",
  "src/store/history/rot/seal.ts",
  "src/tools/backup/run.ts",
  "src/tools/forget/finish-forgetting.ts",
  "src/tools/backup/run-import.ts",
  "src/tools/doctor/repair.ts",
  "src/tools/backup/run-restore.ts",
]
/** With fewer the shared file is large for whoever needs little of it: at a sixth of the pieces `dex mcp` took 1.12 times as long to start. */
const MANY_PIECES = 1 / 5
/** A hook has no time to look for another file. */
const BESIDE_HOOKS = COLD.filter((file) => !/^src\/agents\/.*\/hooks\.ts$/.test(file))
/** What the first file chooses from, each in one piece. */
const ENTRIES = {
  "src/cli/main.ts": "./main.js",
  "src/cli/usage-line.ts": "./usage-line.js",
  "src/hooks/main.ts": "./hook.js",
  "src/tools/blame/run.ts": "./blame.js",
}
const coldName = (path) => `cold/${path.slice("src/".length, -".ts".length).replaceAll("/", "-")}`

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
    // Finds its WebAssembly beside itself.
    external: ["web-tree-sitter"],
    alias: {
      // Its CommonJS asks for its own files in a way that no bundler can follow.
      "jsonc-parser": "jsonc-parser/lib/esm/main.js",
      // One of its users requires it, another imports it: once is enough.
      acorn: fileURLToPath(import.meta.resolve("acorn")),
    },
    // The database driver is CommonJS and asks for Node's modules by `require`.
    banner: { js: "import{createRequire as dexRequire}from'node:module';const require=dexRequire(import.meta.url);" },
    define: { DEX_VERSION: JSON.stringify(version) },
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: /** @type {const} */ ("none"),
    metafile: /** @type {const} */ (true),
    logLevel: /** @type {const} */ ("warning"),
  }
  const pieces = await inPieces({
    ...common,
    plugins: [withoutLocales, ...plugins],
    splitting: true,
    chunkNames: "cold/[name]-[hash]",
    entryPoints: {
      "read-thread": "src/ingest/read-thread.ts",
      "store-thread": "src/ingest/store-thread.ts",
      "code-process": "src/ingest/code-process.ts",
      "document-process": "src/ingest/document-process.ts",
      "apart-process": "src/app/apart-process.ts",
      "helper-process": "src/embed/helper-process.ts",
      "look-up-process": "src/cli/picker/look-up-process.ts",
      "serve-thread": "src/mcp/serve-thread.ts",
      "reader-process": "src/watch/reader-process.ts",
      index: "src/library/index.ts",
      agent: "src/library/agent.ts",
      testing: "src/testing/contract.ts",
      "cold/prompts": "@clack/prompts",
      ...Object.fromEntries(COLD.map((path) => [coldName(path), path])),
    },
  })
  const main = await build({
    ...common,
    plugins: [leaveOut(COLD), ...plugins],
    entryPoints: { main: "src/cli/main.ts", blame: "src/tools/blame/run.ts" },
  })
  writeFileSync(`${outdir}/main.js`, compiledAhead(readFileSync(`${outdir}/main.js`, "utf8")))
  const hook = await build({
    ...common,
    plugins: [leaveOut(BESIDE_HOOKS), ...plugins],
    entryPoints: { hook: "src/hooks/main.ts" },
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
  const first = await build({ ...common, plugins: [leaveOut(COLD)], entryPoints: { dex: "src/cli/dex.ts" } })
  return Object.assign({}, ...[pieces, main, hook, line, page, first].map(({ metafile }) => metafile.outputs))
}

/**
 * esbuild makes a file for each set of pieces that share something: hundreds, most of them below a kilobyte. What many pieces share is one
 * file instead.
 * @param {import("esbuild").BuildOptions} options
 */
async function inPieces(options) {
  const { metafile } = await build({ ...options, metafile: true, write: false })
  return build({ ...options, metafile: true, plugins: [loadTogether(sharedIn(metafile)), ...(options.plugins ?? [])] })
}

/**
 * What many pieces reach without an `import()`, and who reaches some of it.
 * @param {import("esbuild").Metafile} metafile
 */
function sharedIn({ inputs, outputs }) {
  const pieces = Object.values(outputs).flatMap(({ entryPoint }) => entryPoint ?? [])
  const reached = new Map(pieces.map((piece) => [piece, reachedFrom(piece, inputs)]))
  const counts = new Map()
  for (const files of reached.values()) for (const file of files) counts.set(file, (counts.get(file) ?? 0) + 1)
  const shared = [...counts].flatMap(([file, count]) =>
    file.startsWith("src/") && count >= pieces.length * MANY_PIECES ? file : [],
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
 * Each of the users is bundled as a module that also imports all that is shared: so esbuild finds no reason to cut it.
 * @type {(together: { shared: string[], users: string[] }) => import("esbuild").Plugin}
 */
const loadTogether = ({ shared, users }) => ({
  name: "load-together",
  setup(bundler) {
    const wrapped = new Set(users.map((file) => resolve(file)))
    const all = shared.map((file) => `import ${JSON.stringify(resolve(file))}`).join("\n")
    bundler.onResolve({ filter: /^dex:shared$/ }, ({ path }) => ({ path, namespace: "shared" }))
    bundler.onLoad({ filter: /./, namespace: "shared" }, () => ({ contents: all, resolveDir: "." }))
    bundler.onResolve({ filter: /^\.|^src\// }, ({ path: asked, kind, resolveDir }) => {
      if (!["entry-point", "dynamic-import"].includes(kind)) return undefined
      const path = resolve(kind === "entry-point" ? "." : resolveDir, asked)
      return wrapped.has(path) ? { path, namespace: "user" } : undefined
    })
    bundler.onLoad({ filter: /./, namespace: "user" }, ({ path }) => ({
      contents: `export * from ${JSON.stringify(path)}\nimport "dex:shared"`,
      resolveDir: ".",
    }))
  },
})

/**
 * zod says what is wrong in fifty languages, and offers them all to whoever imports it. dex speaks English.
 * @type {import("esbuild").Plugin}
 */
const withoutLocales = {
  name: "without-locales",
  setup(bundler) {
    bundler.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: "export {}" }))
  },
}

/** @type {(cold: string[]) => import("esbuild").Plugin} */
const leaveOut = (cold) => ({
  name: "leave-out",
  setup(bundler) {
    bundler.onResolve({ filter: /./ }, async (asked) => {
      if (asked.kind !== "dynamic-import" || asked.pluginData === "resolved") return undefined
      if (asked.path === "@clack/prompts") return { path: "./cold/prompts.js", external: true }
      const { path } = await bundler.resolve(asked.path, {
        kind: asked.kind,
        resolveDir: asked.resolveDir,
        importer: asked.importer,
        pluginData: "resolved",
      })
      const isAt = (name) => path.replaceAll("\\", "/").endsWith(`/${name}`)
      const own = Object.keys(ENTRIES).find(isAt)
      if (own) return { path: ENTRIES[own], external: true }
      const left = cold.find(isAt)
      return left ? { path: `./${coldName(left)}.js`, external: true } : undefined
    })
  },
})
