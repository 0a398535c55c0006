import { createDex } from "../app/dex.ts"
import { runTool } from "../app/run.ts"
import { VERSION } from "../app/version.ts"
import { DexError } from "../core/error.ts"
import { type OutputOf, readInput, type Tool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { LIBRARY_TOOLS } from "./offered.ts"

// dex as a library, for programs on the same machine. Experimental: it may change with any version.

export type Library = {
  [Name in keyof typeof LIBRARY_TOOLS]: (input: object) => Promise<OutputOf<(typeof LIBRARY_TOOLS)[Name]>>
} & {
  /** Closes the databases. */
  close(): void
}

export type LibraryOptions = {
  /** The home folder whose `.dex` is used. Default: the user's own. */
  home?: string
  /** The folder whose project is the current one. */
  cwd?: string
}

export function openDex({ home, cwd = process.cwd() }: LibraryOptions = {}): Library {
  const env = home === undefined ? process.env : { ...process.env, HOME: home, USERPROFILE: home, DEX_HOME: undefined }
  const dex = createDex({ env, cwd, version: VERSION })
  const callTool = async (tool: Tool<Dex>, input: object): Promise<unknown> => {
    const parsed = readInput(tool.input, tool, input)
    if ("wrong" in parsed) throw new DexError("bad_input", parsed.wrong)
    const { output, record } = await runTool(tool, dex, parsed.ok)
    await record()
    return output
  }
  const methods = Object.entries(LIBRARY_TOOLS).map(([name, tool]) => [
    name,
    (input: object = {}) => callTool(tool, input),
  ])
  return { ...Object.fromEntries(methods), close: () => dex.close() } as Library
}
