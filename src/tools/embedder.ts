import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { loadSettings } from "../config/load.ts"
import { embedSettings } from "../config/servers.ts"
import type { Dex } from "./context.ts"

/**
 * A function that returns the configured embedder's settings; undefined if no embedder is configured. The function reads the key
 * and may throw.
 */
export function embedderOf(dex: Dex): (() => ReturnType<typeof embedSettings>) | undefined {
  const environment = { env: dex.machine.env, home: dex.machine.home }
  const { settings } = loadSettings({ file: dex.home.config, env: environment.env, project: dex.place })
  return settings["embed.provider"] === "none" ? undefined : () => embedSettings(settings, environment)
}

/** True if the local model is selected, some messages have no vector from it, and no process is embedding them. */
export async function lacksVectors(dex: Dex): Promise<boolean> {
  const settings = embedderOf(dex)?.()
  if (settings?.provider !== "local") return false
  const { localPackage } = await import("../embed/local-package.ts")
  const local = localPackage(dex.home.dir)
  const vectors = await (await dex.index())?.vectors()
  if (!local || !vectors) return false
  const space = vectors.stats().find(({ embedder }) => embedder === local.id)
  if (space && space.done >= vectors.documents()) return false
  const { tryLock } = await import("../store/sqlite/lock.ts")
  const lock = tryLock(`${dex.home.dir}/embed.lock`)
  lock?.release()
  return lock !== undefined
}

/**
 * Returns an offer of the local model, only the first time, and only if no embedder is configured. If dex cannot record that it
 * made the offer, it makes none, because it would make it again each time.
 */
export function offerLocalModel(dex: Dex): string | undefined {
  if (embedderOf(dex) !== undefined) return undefined
  try {
    writeFileSync(join(dex.home.dir, "model-offered"), "", { flag: "wx", mode: 0o600 })
  } catch {
    return undefined // the offer was made before, or the folder cannot be written to
  }
  return "A small model on this machine also finds what was said in other words: dex config set embed.provider local (a download of 20 MB; see docs/embeddings.md). This is offered only once."
}
