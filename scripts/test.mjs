// `npm test` runs the unit tests. With files or folders it runs the tests in those, of any kind: `npm test -- test/cli`.
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"

const args = process.argv.slice(2)
const projects = args.some((arg) => existsSync(arg)) ? ["unit", "program", "hub"] : ["unit"]
const { status } = spawnSync(
  process.execPath,
  ["scripts/run.mjs", "vitest", "run", ...projects.flatMap((project) => ["--project", project]), ...args],
  { stdio: "inherit" },
)
process.exit(status ?? 1)
