import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, onTestFinished } from "vitest"

export { treeHash } from "../../src/testing/contract.ts"

/** A folder for this test, which is removed when it ends. */
export function tempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  return dir
}

/** A folder that all tests of a file share. Call it at the top of the file. */
export function sharedTempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}
