import type { SourceId } from "../../core/conversation.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery } from "../sqlite/typed-query.ts"
import { knownProject, OWN_WORDS_SQL, projectId } from "./rows.ts"

// Stores the runs of a project's tests that were found in conversations.

export const TESTS_SCHEMA = `
  create table test_run (
    id integer primary key,
    conversation_id integer not null,
    project_id integer not null,
    number integer not null,
    at integer not null,
    command text not null,
    runner text not null,
    kind text not null,
    script integer not null,
    folder text not null,
    targets text not null,
    filter text not null,
    outcome text not null,
    failed integer not null,
    passed integer,
    failures text not null,
    complete integer not null
  );
  create index test_run_conversation on test_run (conversation_id);
  create index test_run_project on test_run (project_id, at);
`

export type NamedFailure = { test: string; file?: string; message?: string }

export type TestRunWrite = {
  number: number
  at?: number
  command: string
  runner: string
  kind: string
  script: boolean
  folder: string
  targets: string[]
  filter: string[]
  outcome: "passed" | "failed"
  failed: number
  passed?: number
  failures: NamedFailure[]
  complete: boolean
}

export type KnownTestRun = Omit<TestRunWrite, "at"> & {
  source: SourceId
  id: string
  root: string
  at: number
  is_own_words: boolean
}

/** Saves test runs. `endedAt` is used if a run has no time of its own. */
export function saveTestRuns(
  db: Db,
  conversation: number,
  project: string,
  runs: TestRunWrite[],
  endedAt: number | undefined,
): void {
  const id = projectId(db, project)
  const insert = db.prepare(
    `insert into test_run (conversation_id, project_id, number, at, command, runner, kind, script, folder, targets, filter,
       outcome, failed, passed, failures, complete)
     values (@conversation, @project, @number, @at, @command, @runner, @kind, @script, @folder, @targets, @filter,
       @outcome, @failed, @passed, @failures, @complete)`,
  )
  for (const run of runs)
    insert.run({
      ...run,
      conversation,
      project: id,
      at: run.at ?? endedAt ?? 0,
      script: run.script ? 1 : 0,
      targets: JSON.stringify(run.targets),
      filter: JSON.stringify(run.filter),
      passed: run.passed ?? null,
      failures: JSON.stringify(run.failures),
      complete: run.complete ? 1 : 0,
    })
}

export function removeTestRuns(db: Db, conversation: number): void {
  db.prepare("delete from test_run where conversation_id = ?").run(conversation)
}

/** Returns the newest runs of a project's tests, oldest first. */
export function testRuns(db: Db, project: string, limit: number): KnownTestRun[] {
  const rows = rowQuery(
    db,
    `select fact.*, c.source, c.native_id, c.root, ${OWN_WORDS_SQL} as own
     from test_run fact join conversation c on c.id = fact.conversation_id
     where fact.project_id = ? order by fact.at desc, fact.id desc limit ?`,
    RUN_ROW,
  ).all(knownProject(db, project) ?? null, limit)
  return rows.reverse().map(knownRun)
}

const RUN_ROW = {
  source: "text",
  native_id: "text",
  root: "text",
  number: "integer",
  at: "integer",
  own: "integer",
  command: "text",
  runner: "text",
  kind: "text",
  script: "integer",
  folder: "text",
  targets: "text",
  filter: "text",
  outcome: ["passed", "failed"],
  failed: "integer",
  passed: "integer?",
  failures: "text",
  complete: "integer",
} as const

function knownRun(row: RowOf<typeof RUN_ROW>): KnownTestRun {
  const { source, native_id, root, number, at, command, runner, kind, folder, outcome, failed, passed } = row
  return {
    ...{ source, id: native_id, root, number, at, command, runner, kind, folder, outcome, failed },
    script: row.script === 1,
    targets: JSON.parse(row.targets),
    filter: JSON.parse(row.filter),
    passed: passed ?? undefined,
    failures: JSON.parse(row.failures),
    complete: row.complete === 1,
    is_own_words: row.own === 1,
  }
}

/** The number of runs, and the time of the newest. */
export function testRunStats(db: Db, project: string): { runs: number; newest?: number } {
  const { runs, newest } = rowQuery(
    db,
    "select count(*) as runs, max(at) as newest from test_run where project_id = ?",
    { runs: "integer", newest: "integer?" },
  ).get(knownProject(db, project) ?? null)!
  return { runs, newest: newest ?? undefined }
}
