import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, onTestFinished } from "vitest"

export { treeHash } from "../../src/testing/contract.ts"

/** A process that a test started may still write into the folder while it is being removed. */
const REMOVED = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }

/** A folder for this test, which is removed when it ends. */
export function tempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  onTestFinished(() => rmSync(dir, REMOVED))
  return dir
}

/** A folder that all tests of a file share. Call it at the top of the file. */
export function sharedTempDir(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "dex-test-")))
  afterAll(() => rmSync(dir, REMOVED))
  return dir
}
