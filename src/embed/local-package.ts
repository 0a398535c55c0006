import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { DexError } from "../core/error.ts"
import { MAX_SOCKET_BYTES, privateFolder, shortSocketFolder } from "../core/private-folder.ts"
import { readText } from "../core/read-file.ts"
import { integer, object, readAs, type Schema, text } from "../core/schema.ts"
import type { EmbedRole } from "./embedder.ts"

/** The optional package with the model that runs on this machine. It is installed in dex's own folder. */
export type LocalPackage = {
  /** The embedder's id: the model, its revision, the runtime, and the number of dimensions. */
  id: string
  dims: number
  version: string
  /** The file to import. */
  entry: string
}

export const LOCAL_PACKAGE = "dexctx-embed-local"

/**
 * Returns the folder in which the package is installed. It is separate from `~/.dex/node_modules`, which belongs to the user.
 */
export function localFolder(dexDir: string): string {
  return join(dexDir, "embed-local")
}

/**
 * Returns the installed package, or undefined if it is missing or incomplete. The native runtime is used if onnxruntime-node is
 * installed next to the package. The vectors of the two runtimes differ slightly, so the runtime is part of the id.
 */
export function localPackage(dexDir: string): LocalPackage | undefined {
  return readLocalPackage(join(localFolder(dexDir), "node_modules", LOCAL_PACKAGE))
}

/** Reads the package in the given folder. Returns undefined if it is missing or incomplete. */
export function readLocalPackage(folder: string): LocalPackage | undefined {
  const modules = dirname(folder)
  const entry = join(folder, "dist", "index.js")
  const manifest = readManifest(join(folder, "package.json"))
  if (!manifest || !existsSync(entry)) return undefined
  const { version, dex } = manifest
  const runtime = existsSync(join(modules, "onnxruntime-node", "package.json")) ? "native" : "wasm"
  return { id: `local:${dex.model}@${dex.revision}.${runtime}:${dex.dims}:p0`, dims: dex.dims, version, entry }
}

const MAX_BYTES = 64 << 10
type Manifest = { version: string; dex: { model: string; revision: string; dims: number } }
const NON_EMPTY_TEXT = text("", { minLength: 1 })
const MANIFEST: Schema = {
  ...object({
    version: NON_EMPTY_TEXT,
    dex: object({ model: NON_EMPTY_TEXT, revision: NON_EMPTY_TEXT, dims: integer() }),
  }),
  additionalProperties: true,
}

function readManifest(file: string): Manifest | undefined {
  try {
    const manifest = readAs(MANIFEST, JSON.parse(readText(file, MAX_BYTES)) as unknown)
    return "ok" in manifest ? (manifest.ok as Manifest) : undefined
  } catch {
    return undefined // the package is not installed
  }
}

/** The socket on which the process with the model listens, and the lock that prevents a second process. */
export type HelperPaths = { socket: string; lock: string }

/**
 * The version of the socket protocol. Increase it when the protocol changes, so that two versions of dex never misunderstand each
 * other.
 */
const PROTOCOL = 1

/**
 * Returns the socket and the lock for a version of the package, a runtime and a role. Each combination has its own, so that
 * callers never get vectors of the wrong kind.
 */
export function helperPaths(dexDir: string, { id, version }: LocalPackage, role: EmbedRole): HelperPaths {
  const folder = localFolder(dexDir)
  const name = createHash("sha256").update([PROTOCOL, folder, id, version, role].join("\n")).digest("hex").slice(0, 16)
  const lock = join(folder, `${role}.${name}.lock`)
  if (process.platform === "win32") return { socket: `\\\\.\\pipe\\dex-${name}`, lock }
  const socket = join(folder, `${role}.${name}.sock`)
  return {
    socket: Buffer.byteLength(socket) <= MAX_SOCKET_BYTES ? socket : join(requireShortFolder(), `${name}.sock`),
    lock,
  }
}

/**
 * Returns a folder with a short path, for sockets whose path would otherwise be too long. Only its owner may read it, because
 * others could read the search queries.
 */
function requireShortFolder(): string {
  const folder = privateFolder(shortSocketFolder())
  if (folder !== undefined) return folder
  throw new DexError(
    "embed_settings",
    `${shortSocketFolder()} belongs to someone else or can be read by others. Delete it: rm -r ${shortSocketFolder()}`,
  )
}
