import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, onTestFinished } from "vitest"

export { treeHash } from "../../src/testing/contract.ts"

/** A directory of this test's own, gone when it ends. */
export function tempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  return dir
}

/** A directory that all tests of a file share; for the top of the file. */
export function sharedTempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}
