// Installs the real agents that package-lock.json pins, if they are not there yet.
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { INSTALL_SCRIPTS } from "./install-scripts.mjs"

const here = fileURLToPath(new URL(".", import.meta.url))

const modules = join(here, "node_modules")
const stamp = join(modules, ".installed")
const lock = createHash("sha256")
  .update(readFileSync(join(here, "package-lock.json")))
  .digest("hex")
if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lock) install()

function install() {
  // Not `npm ci`: it refuses a lock without the programs for other platforms, and a registry may not have them all.
  orStop(run("npm", ["install", "--no-save", "--ignore-scripts"]), "The agents could not be installed.")
  for (const script of INSTALL_SCRIPTS)
    orStop(run(process.execPath, [join(modules, script)]), `${script} did not put its program in place.`)
  writeFileSync(stamp, lock)
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: here, stdio: "inherit", shell: process.platform === "win32" })
  return status ?? 1
}

function orStop(status, problem) {
  if (status === 0) return
  console.error(`${problem} See what is said above; remove e2e/node_modules and try again.`)
  process.exit(2)
}
