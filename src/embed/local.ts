import { DexError } from "../core/error.ts"
import { askHelper } from "./ask-helper.ts"
import type { Embedder } from "./embedder.ts"
import { localPackage } from "./local-package.ts"
import { probeEmbedder } from "./probe.ts"

/** The maximum number of characters of a text that are sent to the model, which never reads more. */
const MAX_CHARS = 2_000
const MAX_TOKENS = 128

/**
 * Opens the model that runs on this machine, in a separate process. `dexDir` is dex's own folder, in which the model is
 * installed.
 */
export function localEmbedder(dexDir: string): Embedder {
  const local = localPackage(dexDir)
  if (!local)
    throw new DexError(
      "embed_settings",
      "The local model is not installed. Install it: dex config set embed.provider local",
    )
  const { id, dims } = local
  const embed: Embedder["embed"] = (texts, { role, signal }) =>
    askHelper(
      { dexDir, local, role },
      texts.map((text) => text.slice(0, MAX_CHARS).toWellFormed()),
      signal,
    )
  return {
    id,
    dims,
    maxTokens: MAX_TOKENS,
    normalized: true,
    embed,
    probe: (golden, signal) => probeEmbedder({ id, embed }, golden, signal),
  }
}
