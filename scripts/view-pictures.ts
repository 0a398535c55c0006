import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { makeDemo } from "../demo/history.ts"
import { syncHome, warmDex } from "../test/support/warm.ts"
import { takePictures } from "./take-pictures.ts"

// docs/view-*.png: pages of the built program over the demo history, in Debian's Chromium.
//   npm run pictures

const home = mkdtempSync(join(tmpdir(), "dex-pictures-"))
try {
  makeDemo(home)
  await syncHome(home)
  await warmDex(home, ["decisions", "--all"]) // learns from all of it
  await takePictures(home, fileURLToPath(new URL("../docs", import.meta.url)))
} finally {
  rmSync(home, { recursive: true, force: true })
}
process.exit(0)
