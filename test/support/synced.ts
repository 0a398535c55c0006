import { expect } from "vitest"
import { dex } from "./dex.ts"
import { smallHome } from "./home.ts"
import { tempDir } from "./temp.ts"

/** A home of this test's own with a small history, read; `more` adds to it before that. */
export async function synced(more?: (home: string) => void): Promise<string> {
  const home = tempDir()
  smallHome(home)
  more?.(home)
  expect(await dex(home, ["sync"])).toMatchObject({ code: 0 })
  return home
}
