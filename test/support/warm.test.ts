import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { dex } from "./dex.ts"
import { syncedOnce } from "./synced.ts"
import { warmDex } from "./warm.ts"

const home = syncedOnce((home) => mkdirSync(join(home, "elsewhere")))

test.each([
  [["list", "--all"]],
  [["list", "--json"]],
  [["search", "token", "--json"]],
  [["search", "quokka"]],
  [["show", "11111111"]],
  [["show", "nosuch"]],
  [["scan", "11111111"]],
  [["stats"]],
  [["config"]],
  [["help", "all"]],
  [["search", "--help"]],
  [["serch", "token"]],
])("%j has the same output and exit code in a process of its own and in one that runs many", async (args) => {
  const own = await dex(home, args)
  expect(await warmDex(home, args)).toEqual(own)
  expect(await warmDex(home, args)).toEqual(own)
})

test("variables, folder and exit code of one command line do not reach the next", async () => {
  const elsewhere = join(home, "elsewhere")
  const other = await warmDex(home, ["list", "--json"], { DEX_HOME: elsewhere }, elsewhere)
  expect(other).toEqual(await dex(home, ["list", "--json"], { DEX_HOME: elsewhere }))
  expect((await warmDex(home, ["show", "nosuch"])).code).toBe(2)
  expect(await warmDex(home, ["list", "--json"])).toEqual(await dex(home, ["list", "--json"]))
})

test("command lines that are given at once run one after another, each with its own output", async () => {
  const lines = [["list"], ["stats"], ["show", "11111111"]]
  const alone: unknown[] = []
  for (const args of lines) alone.push(await warmDex(home, args))
  expect(await Promise.all(lines.map((args) => warmDex(home, args)))).toEqual(alone)
})

test.each(["hook", "mcp", "serve", "--version"])("dex %s needs a process of its own", async (name) => {
  await expect(warmDex(home, [name])).rejects.toThrow("a process of its own")
})
