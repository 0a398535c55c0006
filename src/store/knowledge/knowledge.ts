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
  symbolsDecidedOn,
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
  changedSince,
  changedTogether,
  commitsAbout,
  commitsSince,
  commitsTouching,
  commitsTouchingAny,
  commitsWith,
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
  callsIn,
  codeFilesIn,
  definitionAt,
  definitionsIn,
  definitionsNamed,
  deprecatedUsedIn,
  importersOf,
  importsIn,
  usesOf,
} from "./symbols.ts"
import { saveTestRuns, TESTS_SCHEMA, testRunStats, testRuns } from "./test-runs.ts"
import {
  conversationCount,
  conversationsAbout,
  conversationsSharing,
  matchedConversation,
  saysChangeAfter,
  TURNS_SCHEMA,
  topicOf,
  topicsWith,
  turnCount,
  turnsWith,
} from "./turns.ts"

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
  symbols: {
    definitionsIn,
    definitionAt,
    definitionsNamed,
    usesOf,
    importersOf,
    importsIn,
    codeFilesIn,
    callsIn,
    deprecatedUsedIn,
  },
  decisions: {
    saveDecisions,
    saveCommitDecisions,
    renewReversals,
    hasStaleReversals,
    knownDecisions,
    symbolsDecidedOn,
  },
  files: { saveWorkedFiles, knownSpelling, findFile, visitsTo, rootsOnBranch, newestWork, filesWorkedOn },
  fixes: { saveFixes, fixesWithWords, fixesOfRun, fixesEditing },
  lines: { lineWorkers, lineFiles, editsOfFiles, ranCommits, cachedOwners, cacheOwners },
  git: {
    gitProject,
    saveCommits,
    commitsAbout,
    commitsWith,
    changedSince,
    commitsTouching,
    commitsTouchingAny,
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
  turns: {
    conversationCount,
    conversationsAbout,
    conversationsSharing,
    matchedConversation,
    saysChangeAfter,
    topicOf,
    topicsWith,
    turnCount,
    turnsWith,
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

type Bound<F> = { [N in keyof F]: F[N] extends (db: Db, ...args: infer G) => infer R ? (...args: G) => R : never }

/**
 * Facts from conversations and projects that help with current work. They are derived and safe to delete. The file is created
 * on first use, and updated by every sync from then on. Methods are grouped by kind of fact; related facts are written in one
 * transaction.
 */
export type Knowledge = { [K in keyof typeof FUNCTIONS]: Bound<(typeof FUNCTIONS)[K]> } & {
  path: string
  close(): void
}

function bindKnowledge(db: Db, path: string): Knowledge {
  const bindAll = <F extends Record<string, (db: Db, ...args: never[]) => unknown>>(functions: F) =>
    Object.fromEntries(
      Object.entries(functions).map(([name, method]) => [name, (...args: never[]) => method(db, ...args)]),
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
      folder text,
      title text,
      started_at integer,
      ended_at integer,
      web_at integer,
      imported_from text,
      says_change integer not null
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
    ${TURNS_SCHEMA}
`
const MIGRATIONS: readonly [string, string][] = [["001-facts", SCHEMA]]
/** A hash of the schema. If it changes, change KNOWLEDGE_FORMAT too. */
export const SCHEMA_MARK = hashOf(SCHEMA)
const SELECT_SCHEMA_MARK = "select value from meta where key = 'schema'"

/** Opens the knowledge. Recreates the file if a dex with another schema wrote it, because nothing in it is the only copy. */
export function openKnowledge(path: string): Knowledge {
  if (!existsSync(path)) copyOlderKnowledge(path)
  const db = openDerivedDatabase(path, MIGRATIONS)
  const selectMark = db.prepare(SELECT_SCHEMA_MARK).pluck()
  if (selectMark.get() === undefined)
    inTransaction(db, () => db.prepare("insert or ignore into meta (key, value) values ('schema', ?)").run(SCHEMA_MARK))
  if (selectMark.get() === SCHEMA_MARK) return bindKnowledge(db, path)
  db.close()
  removeDatabase(path)
  return openKnowledge(path)
}

/** Copies the knowledge that dex 0.1.0 stored, if its schema is the same. */
function copyOlderKnowledge(path: string): void {
  try {
    const older = olderKnowledge(path)
    const olderDb = older === path ? undefined : openIfSameSchema(older, OLDER_BUSY_MS)
    if (olderDb) copyDatabase(olderDb, path)
    olderDb?.close()
  } catch {
    // The older file is damaged, so dex learns everything again.
  }
}

const OLDER_BUSY_MS = 2_000

/** Computes an FNV-1a hash of the text. Hooks open this file too and have no time to load node:crypto. */
function hashOf(text: string): string {
  let [a, b] = [0x811c9dc5, 0x01000193]
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193)
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b)
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("")
}

/** Opens the knowledge for reading. Returns undefined if there is none yet, or if its schema differs. */
export function readKnowledge(path: string, busyMs: number): Knowledge | undefined {
  const db = openIfSameSchema(path, busyMs)
  return db && bindKnowledge(db, path)
}

function openIfSameSchema(path: string, busyMs: number): Db | undefined {
  const db = openReadOnly(path, MIGRATIONS.length, busyMs)
  if (db?.prepare(SELECT_SCHEMA_MARK).pluck().get() === SCHEMA_MARK) return db
  db?.close()
  return undefined
}

/**
 * Deletes what was learned from git and from code in all projects except these. Knowledge from conversations in them stays.
 */
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
 * Deletes the knowledge from projects if it was stored under other redaction rules, because the projects can be read again.
 * Knowledge from conversations is updated together with the history.
 */
export function setRedactionVersion(db: Db, version: number): void {
  const selectVersion = db.prepare("select value from meta where key = 'redaction'").pluck()
  if (selectVersion.get() === String(version)) return // most callers only read, and need no lock
  inTransaction(db, () => {
    if (selectVersion.get() === String(version)) return
    const projects = valueQuery(db, "select path from project", "text").all()
    for (const project of projects) {
      forgetProjectGit(db, project)
      forgetProjectCode(db, project)
    }
    if (projects.length > 0) notePurge(db)
    db.prepare("insert or replace into meta (key, value) values ('redaction', ?)").run(String(version))
  })
}
