import type { SourceId } from "../../core/conversation.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { knownProject, OWN_WORDS, projectId } from "./rows.ts"

// What is known of the project's tests: their runs in conversations, and what reports on disk say.

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

  create table test_report (
    id integer primary key,
    project_id integer not null,
    path text not null,
    stamp text not null,
    at integer not null,
    is_report integer not null,
    unique (project_id, path)
  );
  -- key: the words of the name, which are the same whoever reports it.
  create table test_result (
    report_id integer not null,
    key text not null,
    test text not null,
    file text,
    status text not null,
    message text,
    at integer not null,
    duration_ms integer,
    primary key (report_id, key)
  ) without rowid;
  create index test_result_failed on test_result (report_id) where status = 'failed';
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

export type ReportedTest = {
  /** With its file or class before its name. */
  test: string
  file?: string
  status: "passed" | "failed" | "skipped"
  message?: string
  at: number
  duration_ms?: number
}

export type ReportWrite = {
  path: string
  stamp: string
  at: number
  is_report: boolean
  tests: (ReportedTest & { key: string })[]
}

export type ReportedFailure = { key: string; test: string; file?: string; message?: string; at: number; report: string }

/** `endedAt` stands in where a run has no time of its own. */
export function saveTestRuns(
  db: Db,
  conversation: number,
  project: string,
  runs: TestRunWrite[],
  endedAt: number | undefined,
): void {
  const id = projectId(db, project)
  const put = db.prepare(
    `insert into test_run (conversation_id, project_id, number, at, command, runner, kind, script, folder, targets, filter,
       outcome, failed, passed, failures, complete)
     values (@conversation, @project, @number, @at, @command, @runner, @kind, @script, @folder, @targets, @filter,
       @outcome, @failed, @passed, @failures, @complete)`,
  )
  for (const run of runs)
    put.run({
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

/** The newest runs of a project's tests, oldest first. */
export function testRuns(db: Db, project: string, limit: number): KnownTestRun[] {
  const rows = db
    .prepare(
      `select fact.*, c.source, c.native_id, c.root, ${OWN_WORDS} as own
       from test_run fact join conversation c on c.id = fact.conversation_id
       where fact.project_id = ? order by fact.at desc, fact.id desc limit ?`,
    )
    .all(knownProject(db, project) ?? null, limit) as RunRow[]
  return rows.reverse().map(knownRun)
}

type RunRow = Omit<KnownTestRun, "id" | "script" | "targets" | "filter" | "passed" | "failures" | "complete"> & {
  native_id: string
  script: number
  targets: string
  filter: string
  passed: number | null
  failures: string
  complete: number
  own: number
}

function knownRun(row: RunRow): KnownTestRun {
  const { source, native_id, root, number, at, command, runner, kind, folder, outcome, failed, passed } = row
  return {
    ...{ source, id: native_id, root, number, at, command, runner, kind, folder, outcome, failed },
    script: row.script === 1,
    targets: JSON.parse(row.targets) as string[],
    filter: JSON.parse(row.filter) as string[],
    ...(passed !== null && { passed }),
    failures: JSON.parse(row.failures) as NamedFailure[],
    complete: row.complete === 1,
    is_own_words: row.own === 1,
  }
}

/** The stamp of each file that was read, whether it was a report or not. */
export function knownReports(db: Db, project: string): Map<string, string> {
  const rows = db
    .prepare("select path, stamp from test_report where project_id = ?")
    .all(knownProject(db, project) ?? null) as { path: string; stamp: string }[]
  return new Map(rows.map(({ path, stamp }) => [path, stamp]))
}

/** In place of what the file said before. */
export function saveReport(db: Db, project: string, { path, stamp, at, is_report, tests }: ReportWrite): void {
  inTransaction(db, () => {
    const owner = projectId(db, project)
    remove(db, owner, path)
    const id = db
      .prepare("insert into test_report (project_id, path, stamp, at, is_report) values (?, ?, ?, ?, ?) returning id")
      .pluck()
      .get(owner, path, stamp, at, is_report ? 1 : 0) as number
    // Of two with one name the failed one counts.
    const put = db.prepare(
      `insert into test_result (report_id, key, test, file, status, message, at, duration_ms) values (?, ?, ?, ?, ?, ?, ?, ?)
       on conflict do update set status = excluded.status, message = excluded.message where excluded.status = 'failed'`,
    )
    for (const { key, test, file, status, message, at, duration_ms } of tests)
      put.run(id, key, test, file ?? null, status, message ?? null, at, duration_ms ?? null)
  })
}

export function dropReports(db: Db, project: string, paths: string[]): void {
  const owner = knownProject(db, project)
  if (owner === undefined || paths.length === 0) return
  inTransaction(db, () => {
    for (const path of paths) remove(db, owner, path)
  })
}

function remove(db: Db, project: number, path: string): void {
  const id = db.prepare("select id from test_report where project_id = ? and path = ?").pluck().get(project, path)
  if (id === undefined) return
  db.prepare("delete from test_result where report_id = ?").run(id)
  db.prepare("delete from test_report where id = ?").run(id)
}

/** What reports say failed, oldest first. */
export function reportedFailures(db: Db, project: string, limit: number): ReportedFailure[] {
  const rows = db
    .prepare(
      `select t.key, t.test, t.file, t.message, t.at, r.path as report from test_report r
       join test_result t on t.report_id = r.id and t.status = 'failed'
       where r.project_id = ? order by t.at desc limit ?`,
    )
    .all(knownProject(db, project) ?? null, limit) as (Omit<ReportedFailure, "file" | "message"> & {
    file: string | null
    message: string | null
  })[]
  return rows.reverse().map(({ file, message, ...row }) => ({
    ...row,
    ...(file !== null && { file }),
    ...(message !== null && { message }),
  }))
}

/** When a report last said that this test passed. */
export function reportedPassing(db: Db, project: string, key: string): number | undefined {
  const at = db
    .prepare(
      `select max(t.at) from test_report r join test_result t on t.report_id = r.id and t.key = ? and t.status = 'passed'
       where r.project_id = ?`,
    )
    .pluck()
    .get(key, knownProject(db, project) ?? null) as number | null
  return at ?? undefined
}

/** The reports there are, and the newest run that is known. */
export function testsKnown(db: Db, project: string): { reports: number; runs: number; newest?: number } {
  const id = knownProject(db, project) ?? null
  const reports = db
    .prepare("select count(*) n, max(at) at from test_report where project_id = ? and is_report")
    .get(id) as { n: number; at: number | null }
  const runs = db.prepare("select count(*) n, max(at) at from test_run where project_id = ?").get(id) as {
    n: number
    at: number | null
  }
  const newest = Math.max(reports.at ?? 0, runs.at ?? 0)
  return { reports: reports.n, runs: runs.n, ...(newest > 0 && { newest }) }
}
