import { createHash } from "node:crypto"
import { join } from "node:path"
import { DexError } from "../core/error.ts"
import { LONGEST_SOCKET, privateFolder, shortFolder } from "../core/private-folder.ts"
import type { EmbedRole } from "./embedder.ts"
import { type LocalPackage, localFolder } from "./local-package.ts"

/** Where the process that holds the model listens, and what only one such process can hold. */
export type HelperPlace = { socket: string; lock: string }

/** What is said over the socket: raised when it changes, so that two versions of dex never misunderstand each other. */
const PROTOCOL = 1

/**
 * Another version of the package, another runtime and another role are another place: who asks never gets vectors of
 * another kind than they expect.
 */
export function helperPlace(dexDir: string, { id, version }: LocalPackage, role: EmbedRole): HelperPlace {
  const folder = localFolder(dexDir)
  const name = createHash("sha256").update([PROTOCOL, folder, id, version, role].join("\n")).digest("hex").slice(0, 16)
  const lock = join(folder, `${role}.${name}.lock`)
  if (process.platform === "win32") return { socket: `\\\\.\\pipe\\dex-${name}`, lock }
  const socket = join(folder, `${role}.${name}.sock`)
  return { socket: Buffer.byteLength(socket) <= LONGEST_SOCKET ? socket : join(forLongPaths(), `${name}.sock`), lock }
}

/** For a home with a long path. Only its owner can look into it: who could, would read what is searched for. */
function forLongPaths(): string {
  const folder = privateFolder(shortFolder())
  if (folder !== undefined) return folder
  throw new DexError(
    "embed_settings",
    `${shortFolder()} belongs to someone else or can be read by others. Delete it: rm -r ${shortFolder()}`,
  )
}
