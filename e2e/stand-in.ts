import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import type { Asked } from "./model.ts"

/** Replaces the hook program with one that answers every event. */
export async function standIn(program: string): Promise<void> {
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${await answeringScript()}' "$@"\n`, { mode: 0o755 })
}

/** Leaves the hook program as it is, but lets it run a script that answers every event in place of dex. */
export async function standInForDex(program: string): Promise<void> {
  const text = readFileSync(program, "utf8").replace(/^script=.*$/m, `script='${await answeringScript()}'`)
  writeFileSync(program, text, { mode: 0o755 })
}

async function answeringScript(): Promise<string> {
  const script = join(import.meta.dirname, "node_modules", ".answering-hook.mjs")
  await build({
    entryPoints: [join(import.meta.dirname, "answering-hook.ts")],
    bundle: true,
    platform: "node",
    format: "esm",
    // The database driver takes long to load, and this program does not use it.
    plugins: [
      {
        name: "unused-driver",
        setup: ({ onResolve }) =>
          onResolve({ filter: /^better-sqlite3$/ }, ({ path }) => ({ path, external: true, sideEffects: false })),
      },
    ],
    outfile: script,
    logLevel: "error",
  })
  return script
}

/** The distinct texts between dex's marks in the requests to the model. */
export function contextIn(asked: Asked[]): string {
  const found = asked.flatMap(({ turns }) =>
    turns.flatMap(
      ({ text }) => text.match(/(?:<|&lt;)dex-context(?:>|&gt;)[\s\S]*?(?:<|&lt;)\/dex-context(?:>|&gt;)/g) ?? [],
    ),
  )
  return [...new Set(found)].join("\n")
}
