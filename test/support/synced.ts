import { beforeAll } from "vitest"
import { smallHome } from "./home.ts"
import { sharedTempDir, tempDir } from "./temp.ts"
import { syncHome } from "./warm.ts"

/** Creates a home for this test with a small history that was synced; `more` adds to it before that. */
export async function synced(more?: (home: string) => void): Promise<string> {
  const home = tempDir()
  await readSmall(home, more)
  return home
}

/** Creates one such home for all tests of a file that do not change it. Call it at the top of the file. */
export function syncedOnce(more?: (home: string) => void): string {
  const home = sharedTempDir()
  beforeAll(() => readSmall(home, more))
  return home
}

async function readSmall(home: string, more?: (home: string) => void): Promise<void> {
  smallHome(home)
  more?.(home)
  await syncHome(home)
}
