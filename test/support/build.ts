import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"

/** The tests that run the real program run the one that is built from the code under test. */
export default function setup(): void {
  const root = fileURLToPath(new URL("../..", import.meta.url))
  execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: root, stdio: "inherit" })
}
