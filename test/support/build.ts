import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { builtFrom, keyOfSources } from "../../scripts/build-key.mjs"

const ROOT = join(import.meta.dirname, "../..")

/** Builds the program for tests that run it, unless the existing build was made from the same sources. */
export default function setup(): void {
  if (builtFrom(ROOT) === keyOfSources(ROOT)) return
  execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: ROOT, stdio: "inherit" })
}
