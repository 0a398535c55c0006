import { createHash } from "node:crypto"
import { lstatSync, mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DexError } from "../core/error.ts"
import type { EmbedRole } from "./embedder.ts"
import { type LocalPackage, localFolder } from "./local-package.ts"

/** Where the process that holds the model listens, and what only one such process can hold. */
export type HelperPlace = { socket: string; lock: string }

/** What is said over the socket: raised when it changes, so that two versions of dex never misunderstand each other. */
const PROTOCOL = 1
/** An address of this kind has at most 104 bytes on a Mac and 108 on Linux. */
const LONGEST = 100

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
  return { socket: Buffer.byteLength(socket) <= LONGEST ? socket : join(privateFolder(), `${name}.sock`), lock }
}

/** For a home with a long path. Only its owner can look into it: who could, would read what is searched for. */
function privateFolder(): string {
  const folder = join(tmpdir(), `dex-${process.getuid?.() ?? 0}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { uid, mode } = lstatSync(folder)
  if (lstatSync(folder).isDirectory() && uid === process.getuid?.() && (mode & 0o077) === 0) return folder
  throw new DexError(
    "embed_settings",
    `${folder} belongs to someone else or can be read by others. Delete it: rm -r ${folder}`,
  )
}
