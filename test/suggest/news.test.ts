import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import type { Moment } from "../../src/core/suggestion.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { NEW_SESSION } from "../../src/suggest/finders/finder.ts"
import { RELEVANCE_FLOOR, RELEVANCE_WEIGHTS } from "../../src/suggest/relevance.ts"
import { suggestItems } from "../../src/suggest/suggest.ts"
import { call, putSession, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

/** A project where a conversation edited src/token.ts and five decisions were made about it, and then somebody committed. */
async function changedSince(files: string[]) {
  const at = tempDir()
  const project = join(at, "shop")
  mkdirSync(join(project, "src"), { recursive: true })
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", project, "-c", "user.name=A", "-c", "user.email=a@example.org", ...args])
  git("init", "-q", "-b", "main")
  const session = writer({ cwd: project })
  for (const word of ["wombat", "quokka", "numbat", "dunnart", "bilby"])
    session.prompt(`the ${word} token should always expire within the hour of its region, see src/token.ts`)
  const filePath = join(project, "src/token.ts")
  session.answer("m_e", [call("e1", "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  session.result("e1", "The file was updated.", { toolUseResult: { filePath, structuredPatch: [] } })
  putSession(at, session.records)
  for (const file of files) writeFileSync(join(project, file), "// new\n")
  git("add", ".")
  git("commit", "-q", "-m", "tokens: a stranger's words")
  const run = async (...args: string[]) => {
    const { stdout } = await dex(at, [...args, "--json"], {}, project)
    return (JSON.parse(stdout) as { suggestions: { kind: string; title: string; summary: string }[] }).suggestions
  }
  await syncHome(at)
  await run("suggest") // opts the project in
  return { at, project, run }
}

test("on request, a recent commit has a place, whatever else is known about the file; nothing is shown twice in other words", async () => {
  const { run } = await changedSince(["src/token.ts"])
  const items = await run("suggest", "--file", "src/token.ts")
  const change = items.find(({ kind }) => kind === "change")
  expect(change).toMatchObject({ summary: "tokens: a stranger's words" })
  expect(change!.title).toMatch(/^token\.ts was last changed on \d{4}-\d\d-\d\d \d\d:\d\d by [0-9a-f]{8}$/)
  expect(items.filter(({ title }) => title.includes("last changed"))).toHaveLength(1)
  for (const one of ["warning", "decision"]) expect(items.filter(({ kind }) => kind === one)).toHaveLength(1)
})

test("on return, new commits are shown first; unasked only if they changed the last work, without their subjects", async () => {
  const { at, project, run } = await changedSince(["src/token.ts", "src/clock.ts"])
  const [first] = await run("suggest")
  expect(first).toMatchObject({
    kind: "change",
    title: expect.stringMatching(/^Changed since 2026-01-02 .*: 1 commit, the newest on /),
    summary: "src/token.ts, src/clock.ts\ntokens: a stranger's words",
  })
  const start: Moment = { event: "session_start", project, at: Date.now() }
  const said = (home: string, moment: Moment) => {
    const knowledge = openKnowledge(join(home, ".dex", KNOWLEDGE_FILE))
    const options = { weights: RELEVANCE_WEIGHTS, floor: RELEVANCE_FLOOR, maxItems: 5 }
    const items = suggestItems({ knowledge }, moment, NEW_SESSION, options).filter(({ kind }) => kind === "change")
    knowledge.close()
    return items
  }
  const [unasked] = said(at, start)
  expect(unasked).toMatchObject({ kind: "change", summary: "src/token.ts, src/clock.ts" })
  expect(JSON.stringify(unasked)).not.toContain("stranger")
  const other = await changedSince(["src/clock.ts"])
  expect(said(other.at, { ...start, project: other.project })).toEqual([])
})
