import { expect, test } from "vitest"
import { formatRef } from "../../../src/core/ref.ts"
import { blameFacts, type LineQueries } from "../../../src/learn/blame/facts.ts"
import { answerLinesRequest, mergeLines } from "../../../src/learn/blame/lines-about.ts"

const AT = Date.parse("2026-01-02T10:00:00Z")
const HOUR = 3_600_000

/** Each wrote into one file and had a message at that time. */
function rows(wrote: { source: string; id: string; path: string; at: number; belongs_to?: string }[]): LineQueries {
  const paths = [...new Set(wrote.map(({ path }) => path))]
  const keys = Uint32Array.of(7, 8)
  return {
    lineWorkers: () =>
      wrote.map(({ source, id, at, belongs_to = id }, i) => ({
        ...{ conversation: i + 1, name: String(i + 1), source, id, belongs_to },
        said: Uint32Array.of(at / 1000),
      })),
    lineFiles: () => paths.map((path, i) => ({ file: i + 1, path })),
    editsOfFiles: (files) =>
      wrote.flatMap(({ path, at }, i) => {
        const file = paths.indexOf(path) + 1
        return files.includes(file)
          ? [{ conversation: i + 1, file, number: 3, at, added: keys, removed: Uint32Array.of() }]
          : []
      }),
    ranCommits: () => [{ conversation: 1, number: 4, hash: "1a2b3c4", subject: "a", at: AT }],
  }
}

const asked = (path: string, more: object = {}) => ({
  project: "git.test/acme/api",
  commits: [{ hash: "1a2b3c4d", at: AT, subject: "b" }],
  paths: [{ path, until: AT }],
  sessions: [],
  ...more,
})
const TEAM = [
  { source: "ann/claude_code", id: "a", path: "src/a.ts", at: AT - HOUR },
  { source: "ann/claude_code", id: "long-ago", path: "src/b.ts", at: AT - 100 * HOUR },
  { source: "bob/claude_code", id: "sub", path: "src/b.ts", at: AT - 100 * HOUR, belongs_to: "starter" },
  { source: "bob/claude_code", id: "starter", path: "src/c.ts", at: AT - 200 * HOUR },
]

test("only relevant rows are sent: who edited the commit's files, who ran it, who was active then", () => {
  const told = (path: string, more = {}) =>
    answerLinesRequest(rows(TEAM), asked(path, more))
      .workers.map(({ id }) => id)
      .sort()
  expect(told("src/a.ts")).toEqual(["ann/claude_code:a"])
  expect(told("src/none.ts", { sessions: ["2026-01-02-long-ago"] })).toEqual([
    "ann/claude_code:a",
    "ann/claude_code:long-ago",
  ])
  // A subagent is sent with the conversation that started it.
  expect(told("src/b.ts")).toEqual(TEAM.map(({ source, id }) => `${source}:${id}`).sort())
  const { edits, files } = answerLinesRequest(rows(TEAM), asked("old/a.ts"))
  expect([edits.length, files]).toEqual([1, [{ file: 1, path: "src/a.ts" }]])
})

test("two histories are combined, and what this machine has counts as its own", () => {
  const own = rows([{ source: "claude_code", id: "starter", path: "src/b.ts", at: AT - 2 * HOUR }])
  const sent = answerLinesRequest(rows(TEAM), asked("src/b.ts"))
  const { workers, editsOf, commitRuns } = blameFacts({ lines: mergeLines(own, "/code/api", sent) }, "/code/api")
  const names = workers.map(({ ref }) => formatRef(ref))
  expect(names.filter((name) => name.endsWith(":starter"))).toEqual(["claude_code:starter"])
  expect(names).toContain("ann/claude_code:long-ago")
  const edits = editsOf("src/b.ts", AT)
  expect(edits.map(({ at }) => at)).toEqual([...edits.map(({ at }) => at)].sort((a, b) => a - b))
  expect(edits.at(-1)!.ref).toMatchObject({ source: "claude_code", id: "starter", number: 3 })
  expect([...edits[0]!.added]).toEqual([7, 8])
  expect(commitRuns.map(({ ref }) => formatRef(ref))).toContain("ann/claude_code:a#4")
})
