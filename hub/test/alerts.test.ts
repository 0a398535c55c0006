import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { METRIC_HELP } from "../src/metrics.ts"

const ROOT = join(import.meta.dirname, "../..")
const RULES = join(ROOT, "hub/alerts.yml")
const rules = readFileSync(RULES, "utf8")
const PROMTOOL = "/usr/bin/promtool"

test("every alert has a section in the runbook, and no section is about another one", () => {
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  const sections = [...readFileSync(join(ROOT, "docs/hub-runbook.md"), "utf8").matchAll(/^## (\w+)$/gm)].map(
    ([, name]) => name,
  )
  expect(alerts.length).toBeGreaterThan(5)
  expect(sections).toEqual(alerts)
})

test("every metric in the rules is one that the hub has", () => {
  const metrics = [...rules.matchAll(/\bhub_\w+/g)].map(([name]) => name.replace(/_bucket$/, ""))
  expect(metrics.filter((name) => METRIC_HELP[name] === undefined)).toEqual([])
})

test.skipIf(!existsSync(PROMTOOL))("promtool accepts the rules (Debian's prometheus has it)", () => {
  const { status, stdout, stderr } = spawnSync(PROMTOOL, ["check", "rules", RULES], { encoding: "utf8" })
  expect(`${status} ${stdout}${stderr}`).toMatch(/^0 .*8 rules found/s)
})
