import { build } from "esbuild"

/**
 * One bundle of small pieces: `dex search` loads what a search needs and nothing else. The database is not bundled: it
 * is the one package that npm installs on a user's machine.
 * @param {{ outdir: string, version: string, plugins?: import("esbuild").Plugin[] }} options
 */
export async function bundle({ outdir, version, plugins = [] }) {
  const { metafile } = await build({
    entryPoints: {
      dex: "src/cli/dex.ts",
      "read-thread": "src/ingest/read-thread.ts",
      "store-thread": "src/ingest/store-thread.ts",
    },
    outdir,
    plugins,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node22",
    external: ["better-sqlite3"],
    define: { DEX_VERSION: JSON.stringify(version) },
    chunkNames: "chunks/[name]-[hash]",
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  })
  return metafile
}
