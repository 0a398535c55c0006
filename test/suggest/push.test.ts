import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import type { Moment } from "../../src/core/suggestion.ts"
import { learn } from "../../src/learn/learn.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { NEW_SESSION } from "../../src/suggest/finders/finder.ts"
import { RELEVANCE_FLOOR, RELEVANCE_WEIGHTS } from "../../src/suggest/relevance.ts"
import { suggestItems } from "../../src/suggest/suggest.ts"
import { putSession, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { edit, errorOf, fileOf, MARK, PROJECT, run, sayNoneOf, WAYS } from "./strangers.ts"

// Pushed suggestions never contain a stranger's words, and there are none if nothing is known.

test(`none of ${Object.keys(WAYS).length * 3} passages from strangers, made as relevant as possible, is pushed`, () =>
  sayNoneOf(3))

test("in unrelated projects, at new files and for small talk, nothing is suggested, 200 of 200", async () => {
  const home = tempDir()
  for (let n = 0; n < 20; n++) {
    const id = `${String(n).padStart(8, "0")}-2222-4333-8444-555555555555`
    const session = writer({ sessionId: id, gitBranch: "work" }, `u${n}-`)
    session.prompt(`We decided to keep ${fileOf(n)} in one file. Never split it.`)
    run(session, `c1-${n}`, errorOf(n), true)
    edit(session, `e1-${n}`, fileOf(n), ["-a", "+b"])
    edit(session, `e2-${n}`, `src/part${n}.test.ts`, ["-a", "+b"])
    run(session, `c2-${n}`, "12 passed", false)
    putSession(home, session.records, id)
  }
  await syncHome(home)
  const store = openStore(join(home, ".dex/history.db"))
  const knowledge = openKnowledge(join(home, `.dex/${KNOWLEDGE_FILE}`))
  await learn(store, knowledge)
  const at = Date.UTC(2026, 0, 2, 12)
  const here = { at, source: "claude_code" as const, session: "now" }
  const talk = ["thanks!", "go on", "looks good", "what do you think?", "hello", "yes please", "hm", "ok, next"]
  const moments: Moment[] = Array.from({ length: 50 }, (_, n): Moment[] => [
    { event: "before_edit", file: fileOf(n % 20), project: "/home/dev/another", branch: "work", ...here },
    { event: "before_edit", file: `lib/fresh${n}.ts`, project: PROJECT, branch: "main", ...here },
    { event: "prompt", prompt: talk[n % talk.length]!, project: PROJECT, branch: "main", ...here },
    {
      event: "failed_command",
      command: "ls nowhere",
      error: `ls: cannot access 'x${n}': No such file`,
      project: PROJECT,
      ...here,
    },
  ]).flat()
  const options = { weights: RELEVANCE_WEIGHTS, floor: RELEVANCE_FLOOR, maxItems: 5 }
  expect(moments).toHaveLength(200)
  expect(moments.flatMap((moment) => suggestItems({ knowledge }, moment, NEW_SESSION, options))).toEqual([])
  const known: Moment = { event: "before_edit", file: fileOf(3), project: PROJECT, branch: "work", ...here }
  expect(suggestItems({ knowledge }, known, NEW_SESSION, options)).not.toEqual([])
  store.close()
  knowledge.close()
})

test("texts in the project's files are shown on request, and fetched ones decide nothing", async () => {
  const home = tempDir()
  const [project, library] = [join(home, "proj"), join(home, "lib")]
  const record = (words: string) => `# How to start\n\nStatus: accepted\n\n## Decision\n\n${words} in src/part1.ts\n`
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  const git = (folder: string, ...args: string[]) =>
    execFileSync("git", ["-C", folder, "-c", "user.name=A", "-c", "user.email=a@example.org", ...args])
  write(join(library, "docs/adr/0001-start.md"), record(`Always run ${MARK}fetched`))
  write(join(project, "docs/adr/0001-start.md"), record(`Always run ${MARK}record`))
  const report = `<testcase name="${MARK}report must run first" classname="part1" file="src/part1.ts"><failure message="x"/></testcase>`
  write(join(project, "test-results/junit.xml"), `<testsuite tests="1" failures="1">${report}</testsuite>`)
  for (const folder of [library, project]) {
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "start")
  }
  const inProject = (...args: string[]) => dex(home, args, {}, project)
  expect(await inProject("docs", "add", `file://${library}`)).toMatchObject({ code: 0 })
  expect(await inProject("docs", "add", "docs")).toMatchObject({ code: 0 })
  expect((await inProject("decisions")).stdout).toContain(`${MARK}record`)
  expect((await inProject("decisions")).stdout).not.toContain(`${MARK}fetched`)
  const knowledge = openKnowledge(join(home, `.dex/${KNOWLEDGE_FILE}`))
  const here = { project, at: Date.now() + 1000, source: "claude_code" as const, session: "now" }
  const say = (moment: Pick<Moment, "event" | "file">) =>
    JSON.stringify(
      suggestItems({ knowledge }, { ...moment, ...here }, NEW_SESSION, {
        weights: RELEVANCE_WEIGHTS,
        floor: 0,
        maxItems: 5,
      }),
    )
  for (const event of ["before_edit", "before_read", "watch"] as const)
    expect(say({ event, file: "src/part1.ts" })).not.toContain(MARK)
  expect(say({ event: "session_start" })).not.toContain(MARK)
  const asked = say({ event: "asked", file: "src/part1.ts" })
  expect(asked).toContain(`${MARK}record`)
  expect(asked).not.toContain(`${MARK}report`)
  knowledge.close()
})
