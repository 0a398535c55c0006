// Runs a development tool on the Node that package.json pins, whatever Node the machine has. `npm test` must not depend on the
// machine: better-sqlite3 crashes on Node 20 and does not refuse.
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const pinned = join(root, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node")
const node = process.env.DEX_DEV_NODE ?? (existsSync(pinned) ? pinned : process.execPath)

const [tool, ...args] = process.argv.slice(2)
if (!tool) {
  console.error("usage: node scripts/run.mjs <tool | file> [arguments]")
  process.exit(2)
}
const entry = { vitest: "node_modules/vitest/vitest.mjs" }[tool] ?? tool
const { status, signal } = spawnSync(node, [join(root, entry), ...args], { stdio: "inherit", cwd: root })
process.exit(signal ? 1 : (status ?? 1))
