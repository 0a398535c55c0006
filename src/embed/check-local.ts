import { hash } from "node:crypto"
import { readdirSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"
import { DexError } from "../core/error.ts"
import { readBytes } from "../core/read-file.ts"
import { LOCAL_FILES } from "./local-files.ts"

type FileSums = Readonly<Record<string, string>>

/**
 * The key under which tests store the checksums of their own package. Only code that already runs in this process can do so; no
 * environment variable or file can make dex run another package.
 */
const TEST_CHECKSUMS = Symbol.for("dexctx.localModelFiles")

const MAX_BYTES = 256 << 20
/** Files that are never run. They may be in the package although they have no checksum. */
const NOT_RUN = new Set(["README.md", "NOTICE", "LICENSE"])

/**
 * Throws unless the installed package has exactly the files that were published with this version of dex. Call it before
 * importing anything from the package. `entry` is the path of its `dist/index.js`.
 */
export function checkLocalFiles(entry: string): void {
  const folder = dirname(dirname(entry))
  const testSums = (globalThis as { [TEST_CHECKSUMS]?: FileSums[] })[TEST_CHECKSUMS] ?? []
  const reason = mismatchIn(folder, LOCAL_FILES)
  if (reason === undefined || testSums.some((sums) => mismatchIn(folder, sums) === undefined)) return
  throw new DexError(
    "embed_package",
    `The local model's package is not the one that was published: ${reason}. It was not used. Install it again: dex config set embed.provider local`,
  )
}

function mismatchIn(folder: string, sums: FileSums): string | undefined {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
  const extra = names.find((name) => !Object.hasOwn(sums, name) && !NOT_RUN.has(name))
  if (extra !== undefined) return `it has an additional file, ${extra}`
  for (const [name, sum] of Object.entries(sums)) {
    if (!names.includes(name)) return `${name} is missing`
    if (hash("sha512", readBytes(join(folder, name), MAX_BYTES), "base64") !== sum)
      return `the SHA-512 of ${name} is wrong`
  }
  return undefined
}
