// npm run bench [-- --only sync,search,start,stdio,hook,vectors,documents,git,code,watch,peer] [--idle minutes] [--sizes 100000,…]
// Every figure stands beside its floor, measured in the same run on the same machine.
import { existsSync, mkdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { benchCode } from "./code.ts"
import { generateCorpus } from "./corpus.ts"
import { benchDocuments } from "./documents.ts"
import { benchGit } from "./git.ts"
import { benchHook } from "./hook.ts"
import { DEX, machine, printTable, type Row, time } from "./measure.ts"
import { benchPeer } from "./peer.ts"
import { benchSize, benchStart } from "./search.ts"
import { benchStdio } from "./stdio.ts"
import { benchGenuine, benchNothingNew } from "./sync.ts"
import { benchVectors } from "./vectors.ts"
import { benchWatch } from "./watch.ts"

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    sizes: { type: "string", default: "100000,1000000,3000000" },
    idle: { type: "string", default: "10" },
    keep: { type: "boolean" },
  },
})
const only = values.only?.split(",")
const wanted = (part: string) => only === undefined || only.includes(part)
const folder = join(tmpdir(), "dex-bench-histories")

if (!existsSync(DEX)) throw new Error("Build first: npm run build")
console.log(machine())
const rows: Row[] = []
if (wanted("sync")) rows.push(...benchGenuine(), ...benchNothingNew())
if (wanted("start")) {
  const home = join(folder, "small")
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  generateCorpus(join(home, ".claude"), { messages: 3000, seed: 2 })
  time([DEX, "sync"], { HOME: home })
  rows.push(...benchStart(home))
}
if (wanted("search")) {
  for (const size of values.sizes.split(",").map(Number)) rows.push(...(await benchSize(folder, size)))
}
if (wanted("stdio")) {
  const sizes = values.sizes.split(",").map(Number)
  for (const size of sizes.filter((one) => one <= 1e6)) rows.push(...(await benchStdio(folder, size)))
}
if (wanted("hook")) {
  const sizes = values.sizes.split(",").map(Number)
  for (const size of sizes.filter((one) => one <= 1e6)) rows.push(...benchHook(folder, size))
}
if (wanted("vectors")) {
  // A million takes six minutes, most of them for the exact neighbours to compare with.
  const sizes = values.sizes.split(",").map(Number)
  for (const size of sizes.filter((one) => one <= 1e6)) rows.push(...(await benchVectors(folder, size)))
}
if (wanted("documents")) rows.push(...benchDocuments())
if (wanted("git")) rows.push(...(await benchGit()))
if (wanted("watch")) rows.push(...(await benchWatch(Number(values.idle))))
if (wanted("code")) rows.push(...benchCode())
if (wanted("peer")) rows.push(...benchPeer())
printTable("dex, measured", rows)
if (!values.keep) rmSync(folder, { recursive: true, force: true })
