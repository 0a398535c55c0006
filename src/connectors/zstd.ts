import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createZstdDecompress } from "node:zlib"
import { openFile } from "../files/read-file.ts"

const MAX_BYTES = 2 ** 31
/** Transcripts compress ten to thirty times; what goes further than this is made to fill a disk. */
const MAX_RATIO = 100
const FREE_BYTES = 64 << 20

/** `problem` with a `path`: the file is damaged, and this much of it could be read. */
export type Decompressed = { path?: string; problem?: string; remove: () => void }

/** Decompresses a file into a private temporary folder, which `remove` takes away. Never rejects. */
export async function decompressZstd(source: string): Promise<Decompressed> {
  const folder = mkdtempSync(join(tmpdir(), "dex-zstd-"))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const path = join(folder, "content")
  let tooMuch: string | undefined
  try {
    const { fd, stat } = openFile(source, { maxBytes: MAX_BYTES })
    const allowed = Math.min(MAX_BYTES, Math.max(FREE_BYTES, stat.size * MAX_RATIO))
    let bytes = 0
    const limit = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length
        if (bytes <= allowed) return done(null, chunk)
        tooMuch = `decompresses to more than ${allowed} bytes`
        done(new Error(tooMuch))
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
    const written = statSync(path, { throwIfNoEntry: false })
    const problem = tooMuch ?? `not readable as zstd: ${error instanceof Error ? error.message : String(error)}`
    return tooMuch === undefined && written ? { path, problem, remove } : { problem, remove }
  }
}
