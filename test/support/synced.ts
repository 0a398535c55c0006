import { beforeAll, expect } from "vitest"
import { dex } from "./dex.ts"
import { smallHome } from "./home.ts"
import { sharedTempDir, tempDir } from "./temp.ts"

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
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
}
