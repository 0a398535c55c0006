import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"

// Fetches the packages of packages.txt to read, not to run: no dependencies, no install scripts.
//   node scripts/run.mjs eval/static/fetch.ts FOLDER

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error("Where to? node scripts/run.mjs eval/static/fetch.ts FOLDER")
const listed = readFileSync(new URL("packages.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "")
for (const line of listed) {
  const at = line.lastIndexOf("@")
  const dir = join(folder, line.slice(0, at))
  if (existsSync(join(dir, "package.json"))) continue
  mkdirSync(dir, { recursive: true })
  const packed = execFileSync("npm", ["pack", line, "--silent", "--ignore-scripts", "--pack-destination", folder])
  const file = join(folder, packed.toString().trim())
  execFileSync("tar", ["xzf", file, "-C", dir, "--strip-components=1", "--no-same-owner"])
  rmSync(file)
  console.log(line)
}
