import { createHash } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { afterAll, onTestFinished } from "vitest"

/** A directory of this test's own, gone when it ends. */
export function tempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A directory that all tests of a file share; for the top of the file. */
export function sharedTempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Every file below a directory with the hash of its bytes: equal maps mean that nothing was changed, made or left. */
export function treeHash(dir: string): Record<string, string> {
  const hashes: Record<string, string> = {}
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    hashes[relative(dir, path)] =
      `${statSync(path).mtimeMs} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`
  }
  return hashes
}
