import { resolve } from "node:path"
import { DexError } from "../../core/error.ts"
import { lookAt } from "../../core/look-at.ts"
import { INSTALL_FROM, installLocal, LOCAL_DISK_BYTES, LOCAL_DOWNLOAD_BYTES } from "../../embed/install-local.ts"
import { localPackage } from "../../embed/local-package.ts"
import type { Dex } from "../context.ts"

/**
 * An estimate of how many messages the local model embeds per minute on two processors. In a measurement, WebAssembly embedded 14
 * to 18 messages of 80 tokens per second of processor time (16 November 2026).
 */
const MESSAGES_PER_MINUTE = 20 * 60

/**
 * The cost of the local model on this machine: download, disk space, and time for this history. The time is an overestimate,
 * because many messages have nothing to embed.
 */
export async function localCost(dex: Dex) {
  const messages = dex.hasHistory() ? (await (await dex.store()).stats()).messages : 0
  return {
    isInstalled: localPackage(dex.home.dir) !== undefined,
    figures: {
      download_bytes: LOCAL_DOWNLOAD_BYTES,
      disk_bytes: LOCAL_DISK_BYTES,
      messages,
      minutes: Math.ceil(messages / MESSAGES_PER_MINUTE),
    },
  }
}

/** The path of the package's file: as typed, or from the environment. Undefined if npm downloads the package. */
export function packageFile(dex: Dex, typed: string): string | undefined {
  if (typed === "") return dex.machine.env[INSTALL_FROM]
  const file = resolve(dex.cwd, typed)
  const found = lookAt(file)
  if (found === undefined || found === "unknown" || !found.isFile())
    throw new DexError("usage", `There is no file ${file}. Nothing was changed.`)
  return file
}

export async function installLocalModel(dex: Dex, from: string | undefined): Promise<void> {
  await installLocal(dex.home.dir, from, dex.signal)
}
