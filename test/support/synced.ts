import { beforeAll } from "vitest"
import { smallHome } from "./home.ts"
import { sharedTempDir, tempDir } from "./temp.ts"
import { syncHome } from "./warm.ts"

/** A home of this test's own with a small history, read; `more` adds to it before that. */
export async function synced(more?: (home: string) => void): Promise<string> {
  const home = tempDir()
  await readSmall(home, more)
  return home
}

/** One home with that history, for all tests of a file that change nothing in it; for the top of the file. */
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
