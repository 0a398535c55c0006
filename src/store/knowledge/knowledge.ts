import { existsSync } from "node:fs"
import {
  copyDatabase,
  type Db,
  inTransaction,
  openDerivedDatabase,
  openReadOnly,
  removeDatabase,
} from "../sqlite/database.ts"
import { olderKnowledge } from "../sqlite/older-files.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import {
  CODE_SCHEMA,
  codeCounts,
  codeStamps,
  forgetProjectCode,
  hasCodeFile,
  hasCodeFolder,
  linkedBy,
  relinkImports,
  removeCode,
  restampCode,
  saveCode,
  saveLinkedBy,
} from "./code.ts"
import {
  feedNameOf,
  forgetConversations,
  isLearnerVersion,
  learnedCount,
  learnedToken,
  possibleReporters,
  removedConversation,
  renewConversation,
  saveFacts,
  saveLearned,
  setLearnerVersion,
} from "./conversations.ts"
import {
  DECISIONS_SCHEMA,
  hasStaleReversals,
  knownDecisions,
  renewReversals,
  saveCommitDecisions,
  saveDecisions,
} from "./decisions.ts"
import {
  FILES_SCHEMA,
  filesWorkedOn,
  findFile,
  knownSpelling,
  newestWork,
  rootsOnBranch,
  saveWorkedFiles,
  visitsTo,
} from "./files.ts"
import { FIXES_SCHEMA, fixesEditing, fixesOfRun, fixesWithWords, saveFixes } from "./fixes.ts"
import {
  changedTogether,
  commitsSince,
  commitsTouching,
  currentFileName,
  filesOfCommit,
  forgetProjectGit,
  GIT_SCHEMA,
  gitProject,
  markedCommits,
  saveCommits,
} from "./git.ts"
import { editsOfFiles, LINES_SCHEMA, lineFiles, lineWorkers, ranCommits } from "./lines.ts"
import { cachedOwners, cacheOwners, OWNERS_SCHEMA } from "./owners.ts"
import { isPurgeDue, notePurge, purgeKnowledge } from "./purge.ts"
import { knownProject, projectId, storedSpellings } from "./rows.ts"
import {
  definitionAt,
  definitionsIn,
  definitionsNamed,
  deprecatedUsedIn,
  importersOf,
  importsIn,
  usesOf,
} from "./symbols.ts"
import { saveTestRuns, TESTS_SCHEMA, testRunStats, testRuns } from "./test-runs.ts"

const FUNCTIONS = {
  code: {
    codeStamps,
    saveCode,
    restampCode,
    removeCode,
    linkedBy,
    saveLinkedBy,
    hasCodeFile,
    hasCodeFolder,
    relinkImports,
    codeCounts,
  },
  symbols: { definitionsIn, definitionAt, definitionsNamed, usesOf, importersOf, importsIn, deprecatedUsedIn },
  decisions: { saveDecisions, saveCommitDecisions, renewReversals, hasStaleReversals, knownDecisions },
  files: { saveWorkedFiles, knownSpelling, findFile, visitsTo, rootsOnBranch, newestWork, filesWorkedOn },
  fixes: { saveFixes, fixesWithWords, fixesOfRun, fixesEditing },
  lines: { lineWorkers, lineFiles, editsOfFiles, ranCommits, cachedOwners, cacheOwners },
  git: {
    gitProject,
    saveCommits,
    commitsTouching,
    commitsSince,
    changedTogether,
    currentFileName,
    filesOfCommit,
    markedCommits,
    forgetProjectGit,
  },
  tests: {
    saveTestRuns,
    testRuns,
    testRunStats,
  },
  conversations: {
    learnedCount,
    learnedToken,
    setLearnerVersion,
    isLearnerVersion,
    forgetConversations,
    renewConversation,
    feedNameOf,
    possibleReporters,
    saveLearned,
    saveFacts,
    removedConversation,
  },
  projects: { dropOtherProjects, projectId, knownProject, setRedactionVersion, isPurgeDue, purgeKnowledge },
}

type Bound<F> = { [N in keyof F]: F[N] extends (db: Db, ...given: infer G) => infer R ? (...given: G) => R : never }

/**
 * Facts from conversations and projects that help with current work. Derived, safe to delete; created on first use, and updated
 * by every sync from then on. Methods are grouped by kind of fact; related facts are written in one transaction.
 */
export type Knowledge = { [K in keyof typeof FUNCTIONS]: Bound<(typeof FUNCTIONS)[K]> } & {
  path: string
  close(): void
}

function bindKnowledge(db: Db, path: string): Knowledge {
  const bindAll = <F extends Record<string, (db: Db, ...given: never[]) => unknown>>(functions: F) =>
    Object.fromEntries(
      Object.entries(functions).map(([name, method]) => [name, (...given: never[]) => method(db, ...given)]),
    ) as Bound<F>
  const kinds = Object.entries(FUNCTIONS).map(([kind, functions]) => [kind, bindAll(functions)])
  return { ...Object.fromEntries(kinds), path, close: () => db.close() } as Knowledge
}

const SCHEMA = `
    create table meta (key text primary key, value text not null) without rowid;
    create table project (id integer primary key, path text not null unique);
    -- root: the conversation that it belongs to, itself where to none. web_at: from when on it may hold a stranger's words.
    create table conversation (
      id integer primary key,
      name text not null unique,
      source text not null,
      native_id text not null,
      root text not null,
      project_id integer,
      kind text not null,
      branch text,
      title text,
      started_at integer,
      ended_at integer,
      web_at integer
    );
    create unique index conversation_ref on conversation (source, native_id);
    create index conversation_root on conversation (source, root);
    create index conversation_project on conversation (project_id, ended_at);
    ${FILES_SCHEMA}
    ${FIXES_SCHEMA}
    ${TESTS_SCHEMA}
    ${GIT_SCHEMA}
    ${DECISIONS_SCHEMA}
    ${CODE_SCHEMA}
    ${LINES_SCHEMA}
    ${OWNERS_SCHEMA}
`
const MIGRATIONS: readonly [string, string][] = [["001-facts", SCHEMA]]
/** A hash of the schema. If it changes, KNOWLEDGE_FORMAT must be changed too. */
export const SCHEMA_MARK = markOf(SCHEMA)
const MARK = "select value from meta where key = 'schema'"

/** Opens the knowledge. Recreates the file if a dex with another schema wrote it, because nothing in it is the only copy. */
export function openKnowledge(path: string): Knowledge {
  if (!existsSync(path)) copyOlderKnowledge(path)
  const db = openDerivedDatabase(path, MIGRATIONS)
  const mark = db.prepare(MARK).pluck()
  if (mark.get() === undefined)
    inTransaction(db, () => db.prepare("insert or ignore into meta (key, value) values ('schema', ?)").run(SCHEMA_MARK))
  if (mark.get() === SCHEMA_MARK) return bindKnowledge(db, path)
  db.close()
  removeDatabase(path)
  return openKnowledge(path)
}

/** Copies the knowledge of 0.1.0 if its schema is the same. */
function copyOlderKnowledge(path: string): void {
  try {
    const older = olderKnowledge(path)
    const old = older === path ? undefined : openIfSameSchema(older, OLDER_BUSY_MS)
    if (old) copyDatabase(old, path)
    old?.close()
  } catch {
    // The older file is damaged, so dex learns everything again.
  }
}

const OLDER_BUSY_MS = 2_000

/** Computes an FNV-1a hash of the text. Hooks open this file too and have no time to load node:crypto. */
function markOf(text: string): string {
  let [a, b] = [0x811c9dc5, 0x01000193]
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193)
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b)
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("")
}

/** Opens the knowledge like `openReadOnly`. Also returns undefined if the schema differs. */
export function readKnowledge(path: string, busyMs: number): Knowledge | undefined {
  const db = openIfSameSchema(path, busyMs)
  return db && bindKnowledge(db, path)
}

function openIfSameSchema(path: string, busyMs: number): Db | undefined {
  const db = openReadOnly(path, MIGRATIONS, busyMs)
  if (db?.prepare(MARK).pluck().get() === SCHEMA_MARK) return db
  db?.close()
  return undefined
}

/** Deletes the git and code knowledge of all other projects. Knowledge from conversations there stays. */
export function dropOtherProjects(db: Db, projects: string[]): void {
  const others = valueQuery(
    db,
    `select path from project p where path not in (select value from json_each(?))
       and (exists (select 1 from git_read where project_id = p.id) or exists (select 1 from code_file where project_id = p.id))`,
    "text",
  ).all(JSON.stringify(storedSpellings(db, projects)))
  if (others.length === 0) return // most callers only read, and need no lock
  inTransaction(db, () => {
    for (const project of others) {
      forgetProjectGit(db, project)
      forgetProjectCode(db, project)
    }
    notePurge(db)
  })
}

/**
 * Deletes project knowledge from before a change of the redaction rules, because the projects can be read again. Knowledge from
 * conversations follows the history.
 */
export function setRedactionVersion(db: Db, version: number): void {
  const redactionMark = db.prepare("select value from meta where key = 'redaction'").pluck()
  if (redactionMark.get() === String(version)) return // most callers only read, and need no lock
  inTransaction(db, () => {
    if (redactionMark.get() === String(version)) return
    const projects = valueQuery(db, "select path from project", "text").all()
    for (const project of projects) {
      forgetProjectGit(db, project)
      forgetProjectCode(db, project)
    }
    if (projects.length > 0) notePurge(db)
    db.prepare("insert or replace into meta (key, value) values ('redaction', ?)").run(String(version))
  })
}
