import { createReadStream, createWriteStream, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createZstdDecompress, zstdDecompressSync } from "node:zlib"
import { codeOf } from "../../core/error.ts"
import { openFile } from "../../core/read-file.ts"

const MAX_BYTES = 2 ** 31
/**
 * The largest ratio of decompressed to compressed size. For transcripts it is ten to thirty; a file with a much higher ratio is
 * an attempt to fill the disk.
 */
const MAX_RATIO = 100
const ALWAYS_ALLOWED_BYTES = 64 << 20

/** A decompressed file. If there is a `problem` and a `path`, the file is damaged, and `path` contains the readable part. */
export type DecompressedFile = { path?: string; problem?: string; remove: () => void }

/**
 * Decompresses a file into its own folder below `scratch`, which `remove` deletes. Rejects if the file is missing or
 * the disk is full. Errors in the file's content are returned as `problem`.
 */
export async function decompressZstd(source: string, scratch: string | undefined): Promise<DecompressedFile> {
  if (scratch === undefined) throw new Error("there is no folder to decompress it into")
  mkdirSync(scratch, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(join(scratch, "zstd-"))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const path = join(folder, "content")
  let sizeProblem: string | undefined
  try {
    const { fd, stat } = openFile(source, { maxBytes: MAX_BYTES })
    const allowed = Math.min(MAX_BYTES, Math.max(ALWAYS_ALLOWED_BYTES, stat.size * MAX_RATIO))
    let bytes = 0
    const limit = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length
        if (bytes <= allowed) return done(null, chunk)
        sizeProblem = `decompresses to more than ${allowed} bytes`
        done(new Error(sizeProblem))
      },
    })
    await pipeline(
      createReadStream("", { fd }),
      createZstdDecompress(),
      limit,
      createWriteStream(path, { mode: 0o600, flags: "wx" }),
    )
    return { path, remove }
  } catch (error) {
    if (error instanceof Error && "syscall" in error) {
      remove()
      throw isFull(error)
        ? new Error(`there is no room to decompress it (${scratch}). Free some space, then sync again`)
        : error
    }
    const written = statSync(path, { throwIfNoEntry: false })
    const problem = sizeProblem ?? `not readable as zstd: ${error instanceof Error ? error.message : String(error)}`
    return sizeProblem === undefined && written ? { path, problem, remove } : { problem, remove }
  }
}

function isFull(error: Error): boolean {
  return ["ENOSPC", "EDQUOT"].includes(codeOf(error))
}

/** Like `decompressZstd`, for bytes in memory. Throws if they are not zstd, or decompress to too much. */
export function decompressZstdBytes(bytes: Uint8Array): Buffer {
  const maxOutputLength = Math.min(MAX_BYTES, Math.max(ALWAYS_ALLOWED_BYTES, bytes.length * MAX_RATIO))
  return zstdDecompressSync(bytes, { maxOutputLength })
}
