import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
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
  const [name, version] = [line.slice(0, at), line.slice(at + 1)]
  const dir = join(folder, name)
  if (existsSync(join(dir, "package.json"))) continue
  const answer = await fetch(`https://registry.npmjs.org/${name}/-/${name.split("/").at(-1)}-${version}.tgz`)
  if (!answer.ok) throw new Error(`${line}: the registry answered ${answer.status}`)
  mkdirSync(dir, { recursive: true })
  const input = Buffer.from(await answer.arrayBuffer())
  execFileSync("tar", ["xz", "-C", dir, "--strip-components=1", "--no-same-owner"], { input })
  console.log(line)
}
