import { closeSync, readdirSync, readSync } from "node:fs"
import { join } from "node:path"
import { lookAt } from "../../core/look-at.ts"
import { openFile } from "../../core/read-file.ts"
import type { Machine } from "./connector.ts"

/**
 * For agents that find a conversation only from its own folder: the copy that they find from another one. Only reads;
 * `tools/resume/bring.ts` creates the copy after the person agreed.
 */
export type Bring = {
  /** The first version that finds a conversation from any folder. */
  foundSince?: string
  /**
   * Returns undefined if the agent already finds the conversation from `folder`, or if there is nothing to copy. The folder's path
   * is the one that a program sees that runs in it, without links.
   */
  plan(conversation: ConversationToBring, folder: string, machine: Machine): BringPlan | undefined
}

/** The id is untrusted: it comes from a transcript. */
export type ConversationToBring = { id: string; cwds: readonly string[] }

export type BringPlan =
  /** New files below the agent's own folder `root`. */
  | { type: "files"; root: string; files: NewFile[] }
  /**
   * The agent's own commands, run in the new folder: `exportCommand` prints the conversation, `convert` gives it the id of the copy,
   * and `importCommand` reads a file with the result, which is its last argument.
   */
  | { type: "import"; id: string; exportCommand: string[]; convert(exported: string): string; importCommand: string[] }

export type NewFile = {
  /** Relative to the root of the plan. */
  path: string
  /** The content in pieces, because a transcript may be larger than the memory that dex may use. */
  content: () => Iterable<string | Buffer>
}

const PIECE_BYTES = 1 << 20

/** Reads a transcript piece by piece. Refuses a link. */
export function* transcriptPieces(path: string): Generator<Buffer> {
  const { fd } = openFile(path, { follow: false })
  try {
    for (;;) {
      const piece = Buffer.allocUnsafe(PIECE_BYTES)
      const bytesRead = readSync(fd, piece)
      if (bytesRead === 0) return
      yield piece.subarray(0, bytesRead)
    }
  } finally {
    closeSync(fd)
  }
}

/** Whether an id can be part of a file name, and cannot be read as an option. */
export function isPlainId(id: string): boolean {
  return /^[A-Za-z0-9][\w-]{0,199}$/.test(id)
}

/** The names in a folder. Empty if it does not exist or cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // not readable; then there is nothing to copy
  }
}

/** Returns the file that was changed last, which has the newest messages. Ignores links and what is not a file. */
export function newestFile(paths: readonly string[]): string | undefined {
  let newest: { path: string; changedAt: number } | undefined
  for (const path of paths) {
    const stats = lookAt(path, { follow: false })
    if (stats === undefined || stats === "unknown" || !stats.isFile()) continue
    if (newest === undefined || stats.mtimeMs > newest.changedAt) newest = { path, changedAt: stats.mtimeMs }
  }
  return newest?.path
}

/** Returns the newest file with this name in the subfolders of a folder: `<folder>/<any>/<steps>`. */
export function newestBelow(folder: string, ...steps: string[]): string | undefined {
  return newestFile(namesIn(folder).map((name) => join(folder, name, ...steps)))
}
