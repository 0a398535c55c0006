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
  expect(used.filter((action) => !/^[\w-]+\/[\w-]+(?:\/[\w-]+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual(
    [],
  )
})

test("every script that a workflow runs exists", () => {
  const run = workflows.flatMap(({ text }) =>
    [...text.matchAll(/run: npm (?:run )?([\w:]+)/gm)].map(([, name]) => name!),
  )
  expect(run).toEqual(expect.arrayContaining(["check", "test", "e2e", "release:check"]))
  const ofNpm = ["ci", "pack", "publish"]
  expect(run.filter((name) => !ofNpm.includes(name) && scripts[name] === undefined)).toEqual([])
})

test("a job that may write or sign runs nothing from the repository, and only one may publish to npm", () => {
  const mayWrite = workflows.flatMap(({ file, text }) =>
    text.split(/^ {2}(?=[\w-]+:$)/m).flatMap((job) => {
      const rights = [...job.matchAll(/^ +([\w-]+): write$/gm)].map(([, right]) => right!)
      return rights.length === 0
        ? []
        : [{ job: `${file} ${/^[\w-]+/.exec(job)![0]}`, rights: rights.join(" "), text: job }]
    }),
  )
  expect(mayWrite.map(({ job, rights }) => `${job}: ${rights}`)).toEqual([
    "canary.yml issues: issues",
    "release.yml publish: id-token",
    "release.yml release: contents id-token attestations",
    "release.yml publish-image: packages id-token attestations",
    "scorecard.yml scorecard: security-events id-token",
    "security.yml codeql: security-events",
  ])
  for (const { job, text } of mayWrite) expect(text, job).not.toMatch(/npm (?:ci|install|run|test)|docker build/)
  const commands = mayWrite.flatMap(({ job, text }) =>
    [...text.matchAll(/run: ([^|].*)/g)].map(([, run]) => `${job}: ${run}`),
  )
  expect(commands).toEqual([
    "canary.yml issues: node e2e/canary/issues.ts report/canary.json",
    "release.yml publish: npm publish ./dexctx-*.tgz --provenance --access public --ignore-scripts",
    expect.stringContaining('release.yml release: gh release create "$GITHUB_REF_NAME" --verify-tag '),
  ])
  const publishes = mayWrite.filter(({ text }) => text.includes("checkout"))
  expect(publishes.map(({ job }) => job)).toEqual([
    "canary.yml issues",
    "scorecard.yml scorecard",
    "security.yml codeql",
  ])
})

test("no workflow runs with the rights of a pull request's target, or puts text from outside into a command", () => {
  for (const { file, text } of workflows) {
    expect(text, file).not.toMatch(/pull_request_target|workflow_run/)
    expect(text, file).toMatch(/^permissions:(?: \{\}|\n {2}contents: read)$/m)
    const inCommands = [...text.matchAll(/run: (?:\|\n(?: {10}.*\n)+|.*)/g)].filter(([run]) => run.includes("${{"))
    expect(
      inCommands.map(([run]) => run),
      file,
    ).toEqual([])
  }
})

test("the job that writes the canary's issues runs nothing that npm installed", () => {
  const issues = workflows.find(({ file }) => file === "canary.yml")!.text.split("\n  issues:\n")[1]!
  expect([...issues.matchAll(/run: (.+)/g)].map(([, command]) => command)).toEqual([
    "node e2e/canary/issues.ts report/canary.json",
  ])
  const imported = [...readFileSync(join(ROOT, "e2e/canary/issues.ts"), "utf8").matchAll(/ from "(.+)"/g)]
  expect(imported.map(([, module]) => module)).toEqual(["node:child_process", "node:fs", "./difference.ts"])
})
