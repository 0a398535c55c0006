import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const ROOT = join(import.meta.dirname, "../..")
const FOLDER = join(ROOT, ".github/workflows")
const workflows = readdirSync(FOLDER).map((file) => ({ file, text: readFileSync(join(FOLDER, file), "utf8") }))
const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> }

test("every action is pinned by a commit's hash, with its version next to it", () => {
  const used = workflows.flatMap(({ text }) => [...text.matchAll(/uses: (.+)$/gm)].map(([, action]) => action!))
  expect(used.length).toBeGreaterThan(5)
  expect(used.filter((action) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([])
})

test("every script that a workflow runs exists", () => {
  const run = workflows.flatMap(({ text }) =>
    [...text.matchAll(/run: npm (?:run )?([\w:]+)/gm)].map(([, name]) => name!),
  )
  expect(run).toEqual(expect.arrayContaining(["check", "test", "e2e", "release:check"]))
  const ofNpm = ["ci", "pack", "publish"]
  expect(run.filter((name) => !ofNpm.includes(name) && scripts[name] === undefined)).toEqual([])
})

test("only one job may publish, and it runs nothing from the repository", () => {
  const mayWrite = workflows.flatMap(({ file, text }) =>
    [...text.matchAll(/^.*: write$/gm)].map(([line]) => file + line),
  )
  expect(mayWrite).toEqual(["canary.yml      issues: write", "release.yml      id-token: write"])
  const publish = workflows.find(({ file }) => file === "release.yml")!.text.split("\n  publish:\n")[1]!
  expect(publish).not.toMatch(/checkout|npm (?:ci|install|run|test)/)
  expect([...publish.matchAll(/run: (.+)/g)].map(([, command]) => command)).toEqual([
    "npm publish ./dexctx-*.tgz --provenance --access public --ignore-scripts",
  ])
})

test("the job that writes the canary's issues runs nothing that npm installed", () => {
  const issues = workflows.find(({ file }) => file === "canary.yml")!.text.split("\n  issues:\n")[1]!
  expect([...issues.matchAll(/run: (.+)/g)].map(([, command]) => command)).toEqual([
    "node e2e/canary/issues.ts report/canary.json",
  ])
  const imported = [...readFileSync(join(ROOT, "e2e/canary/issues.ts"), "utf8").matchAll(/ from "(.+)"/g)]
  expect(imported.map(([, module]) => module)).toEqual(["node:child_process", "node:fs", "./difference.ts"])
})
