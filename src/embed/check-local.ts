import { hash } from "node:crypto"
import { readdirSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"
import { DexError } from "../core/error.ts"
import { readBytes } from "../core/read-file.ts"
import { LOCAL_FILES } from "./local-files.ts"

type FileChecksums = Readonly<Record<string, string>>

/**
 * The key under which tests store the checksums of their own package. Only code that already runs in this process can do so; no
 * environment variable or file can make dex run another package.
 */
const TEST_CHECKSUMS = Symbol.for("dexctx.localModelFiles")

const MAX_BYTES = 256 << 20
/** Files that are never run, so the package may contain them although dex has no checksum for them. */
const NOT_RUN = new Set(["README.md", "NOTICE", "LICENSE"])

/**
 * Throws unless the installed package has exactly the files that were published with this version of dex. Call it before
 * importing anything from the package. `entry` is the path of its `dist/index.js`.
 */
export function checkLocalFiles(entry: string): void {
  const folder = dirname(dirname(entry))
  const testChecksums = (globalThis as { [TEST_CHECKSUMS]?: FileChecksums[] })[TEST_CHECKSUMS] ?? []
  const reason = mismatchIn(folder, LOCAL_FILES)
  if (reason === undefined || testChecksums.some((checksums) => mismatchIn(folder, checksums) === undefined)) return
  throw new DexError(
    "embed_package",
    `The local model's package is not the one that was published: ${reason}. It was not used. Install it again: dex config set embed.provider local`,
  )
}

function mismatchIn(folder: string, checksums: FileChecksums): string | undefined {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
  const extraFile = names.find((name) => !Object.hasOwn(checksums, name) && !NOT_RUN.has(name))
  if (extraFile !== undefined) return `it has an additional file, ${extraFile}`
  for (const [name, checksum] of Object.entries(checksums)) {
    if (!names.includes(name)) return `${name} is missing`
    if (hash("sha512", readBytes(join(folder, name), MAX_BYTES), "base64") !== checksum)
      return `the SHA-512 of ${name} is wrong`
  }
  return undefined
}
