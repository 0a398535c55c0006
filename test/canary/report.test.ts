import { expect, test } from "vitest"
import type { AgentReport } from "../../e2e/canary/difference.ts"
import { EXPLAINED, KNOWN_COLUMNS } from "../../e2e/canary/explained.ts"
import { releasesIn } from "../../e2e/canary/install.ts"
import type { Observation } from "../../e2e/canary/observe.ts"
import { differencesIn, hasDifference, textOf } from "../../e2e/canary/report.ts"

const NOTHING: Observation = {
  files: [],
  read: [],
  telling: [],
  records: {},
  unknown: {},
  skipped: {},
  unreadable: [],
  tables: {},
  columns: {},
  lost: [],
}
const found = (agent: AgentReport["agent"], seen: Partial<Observation>) =>
  differencesIn(agent, { ...NOTHING, ...seen }).differences.map(({ what, name, count }) => `${what} ${name} ${count}`)

test("names unknown records, tables and columns, damaged records, unread files and lost texts", () => {
  const { session } = KNOWN_COLUMNS.opencode!
  const seen = {
    unknown: { new_kind: 3 },
    skipped: { "not JSON": 1 },
    tables: { session_v3: 12 },
    columns: { session: [...session!, "summary_v2"], unread_table: ["a"] },
    files: [".local/share/opencode/opencode.db", ".local/share/opencode/v3/messages.bin"],
    read: [".local/share/opencode/opencode.db"],
    unreadable: ["x.json: no permission"],
    lost: ["dex show: the answer"],
  }
  expect(found("opencode", seen)).toEqual([
    "record new_kind 3",
    "skipped not JSON 1",
    "table session_v3 12",
    "column session.summary_v2 1",
    "file .local/share/opencode/v3/messages.bin 1",
    "file x.json: no permission 1",
    "text dex show: the answer 1",
  ])
})

test("an explained file is a difference once it contains words of the conversation", () => {
  const files = [".codex/memories_1.sqlite"]
  expect(found("codex", { files })).toEqual([])
  expect(found("codex", { files, telling: files })).toEqual(["copy .codex/memories_1.sqlite 1"])
  expect(found("pi", { files })).toEqual(["file .codex/memories_1.sqlite 1"])
})

test("every explanation has a reason, and none covers all files of an agent", () => {
  for (const { names, why, agents } of EXPLAINED) {
    expect(why.length).toBeGreaterThan(20)
    expect(agents.length).toBeGreaterThan(0)
    expect(names.filter((name) => /^\.?\w*\/?\*+$/.test(name))).toEqual([])
  }
})

test("the report says of every agent what was run, what differs, and what was not run", () => {
  const counts = { files: 5, read: 1, seconds: 4, explained: [] }
  const agents: AgentReport[] = [
    {
      agent: "codex",
      title: "Codex",
      newest: "1.1.0",
      version: "1.0.0",
      ...counts,
      records: { a: 1200, b: 1 },
      differences: [],
    },
    {
      agent: "pi",
      title: "Pi",
      newest: "2.0.0",
      version: "2.0.0",
      ...counts,
      records: {},
      differences: [{ what: "record", name: "new\u001B[2J\u202E\nkind", count: 2 }],
    },
    {
      agent: "grok",
      title: "Grok",
      ...counts,
      seconds: undefined,
      records: {},
      differences: [{ what: "run", name: "no network", count: 1 }],
    },
  ]
  const report = { date: "2026-11-19", agents, not_run: [{ title: "Amp", package: "amp", why: "it needs an account" }] }
  expect(textOf(report).split("\n")).toEqual([
    "Codex 1.0.0 (npm has 1.1.0, which cannot be installed): all is read; wrote 5 files, 1 of them conversations with 1,201 records (a 1200, b 1); 0 explained; 4 s",
    "Pi 2.0.0: 1 difference; wrote 5 files, 1 of them conversations with 0 records (); 0 explained; 4 s",
    "  unknown record: new kind (2)",
    "Grok: 1 difference",
    "  could not be run: no network",
    "Amp: not run: it needs an account",
  ])
  expect(hasDifference(report)).toBe(true)
  expect(hasDifference({ ...report, agents: agents.slice(0, 1) })).toBe(false)
})

test("tries releases only, newest first", () => {
  expect(releasesIn('["0.9.0","1.0.0-beta.1","1.0.0","1.0.1"]')).toEqual(["1.0.1", "1.0.0", "0.9.0"])
  expect(releasesIn('"1.0.0"')).toEqual(["1.0.0"])
})
