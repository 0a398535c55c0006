import { execFileSync, spawnSync } from "node:child_process"
import { join } from "node:path"
import { expect, test } from "vitest"
import { planOf } from "../../scripts/torture.mjs"

const ROOT = join(import.meta.dirname, "../..")
const runs = (args: string[], env = {}) => {
  const plan = planOf(args, env)
  if (!("runs" in plan)) throw new Error(JSON.stringify(plan))
  return plan.runs
}
const wrong = (...args: string[]) => {
  const plan = planOf(args, {})
  return "wrong" in plan ? plan.wrong : undefined
}

test("runs every campaign, or the named ones, in the order of the table", () => {
  const all = runs([]).map((run) => run.name)
  expect(all.length).toBeGreaterThan(10)
  expect(new Set(all).size).toBe(all.length)
  expect(runs(["model", "kill"]).map((run) => run.name)).toEqual(["kill", "model"])
})

test("a count and a seed on the command line override the environment, which overrides the defaults", () => {
  expect(runs(["model", "--count", "5000", "--seed", "7"])).toMatchObject([
    { file: "test/torture/model.test.ts", env: { DEX_HISTORIES: "5000", DEX_SEED: "7" } },
  ])
  expect(runs(["--count=5", "kill", "wal"]).map((run) => run.env)).toEqual([{ DEX_KILLS: "5" }, { DEX_CUTS: "5" }])
  expect(runs(["protocol", "--seed", "3"])[0]!.env).toEqual({ DEX_MCP_FUZZ: "50000", DEX_MCP_SEED: "3" })
  expect(runs(["model"], { DEX_HISTORIES: "20", DEX_SEED: "9" })[0]!.env).toEqual({
    DEX_HISTORIES: "20",
    DEX_SEED: "9",
  })
  expect(runs(["model", "--count", "30"], { DEX_HISTORIES: "20" })[0]!.env).toMatchObject({ DEX_HISTORIES: "30" })
  expect(runs(["model"])[0]!.env).toEqual({ DEX_HISTORIES: "50000", DEX_SEED: expect.stringMatching(/^\d+$/) })
})

test("says what is wrong with the arguments, and which campaigns and options exist", () => {
  expect(wrong("modle")).toMatch(/There is no campaign "modle".*kill, wal, model/)
  for (const value of ["", "0", "-1", "1.5", "many"])
    expect(wrong("kill", `--count=${value}`)).toBe("--count takes a whole number from 1 on.")
  expect(wrong("kill", "--count")).toBe("--count takes a whole number from 1 on.")
  expect(wrong("kill", "--often", "3")).toBe("There is no option --often.")
  expect(wrong("--count", "5")).toMatch(/--count goes with the campaigns that it is for/)
  expect(wrong("disk", "--count", "5")).toBe("The campaign disk has no count.")
  expect(wrong("kill", "--seed", "5")).toBe("The campaign kill has no seed.")
})

test("the command prints its usage, and exits with 2 if it does not understand its arguments", () => {
  const asked = execFileSync(process.execPath, ["scripts/torture.mjs", "--help"], { cwd: ROOT, encoding: "utf8" })
  expect(asked).toMatch(/npm run torture -- model --count 5000 --seed 7/)
  for (const { name } of runs([])) expect(asked).toContain(`\n  ${name}`)
  const { status, stderr } = spawnSync(process.execPath, ["scripts/torture.mjs", "modle"], {
    cwd: ROOT,
    encoding: "utf8",
  })
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(/^There is no campaign "modle"/) })
})
