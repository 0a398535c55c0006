import { formatRef } from "../../core/ref.ts"
import {
  beforeFirstWrite,
  type Db,
  emptyLog,
  explainSchemaError,
  hasSchemaOf,
  inTransaction,
  openDatabase,
} from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { changes, revision } from "./feed.ts"
import { changeMarks, conversationsWithTag } from "./marks.ts"
import { HISTORY_MIGRATIONS } from "./migrations.ts"
import { markPrivate, reassignStored } from "./private-folders.ts"
import {
  conversationSpans,
  conversationsIn,
  conversationsKeptOnlyHere,
  conversationsUsingModel,
  findConversations,
  listConversations,
  loadConversation,
  readTitles,
} from "./read/conversations.ts"
import { loadMessages, readVersions } from "./read/messages.ts"
import { metaJson, metaValue } from "./read/meta.ts"
import {
  busiestProjects,
  documentsIn,
  historyStats,
  projectCommits,
  projectFiles,
  projectIdentities,
  projectPullRequests,
  readCollections,
  readProjects,
} from "./read/overview.ts"
import {
  hasReadableRecords,
  knownContainers,
  knownUnit,
  knownUnits,
  rawLines,
  sourceReport,
  unitSources,
  unitsWithSecrets,
  unreadableFiles,
} from "./read/units.ts"
import { commandsOf, commitRows, conversationsTouching, editedFiles, filesOf, madeRows, readWork } from "./read/work.ts"
import { damagedIds, type OnDamage } from "./rot/checked-rows.ts"
import { isSealed, registerRowSum } from "./rot/sums.ts"
import { createSumTriggers } from "./rot/table-sql.ts"
import { makeSpellingsEquallyPrivate, spellingsOf } from "./spellings.ts"
import type { HistoryWriter, Progress } from "./store.ts"

/** Opens the history in one SQLite file. Code that few commands need is imported when it is first used. */
export function openStore(
  path: string,
  { cacheKb, platform = process.platform }: { cacheKb?: number; platform?: NodeJS.Platform } = {},
): HistoryWriter {
  const db = openDatabase(path, HISTORY_MIGRATIONS, cacheKb)
  registerRowSum(db)
  beforeFirstWrite(db, () => createSumTriggers(db))
  const historyId = prepareHistory(db, path, platform)
  // SQLite is synchronous, but other stores are not, so all methods return promises.
  const run = async <T>(work: () => T): Promise<T> => {
    try {
      isSealed(db)
      return work()
    } catch (error) {
      throw explainSchemaError(db, HISTORY_MIGRATIONS, error, path)
    }
  }
  const damagedNames = new Set<string>()
  const onDamage: OnDamage = (what) =>
    void damagedNames.add(typeof what === "string" ? what : formatRef({ source: what.source, id: what.id }))
  return {
    id: async () => historyId,
    knownUnits: (source) => run(() => knownUnits(db, source)),
    knownUnit: (source, key) => run(() => knownUnit(db, source, key)),
    knownContainers: (source) => run(() => knownContainers(db, source)),
    saveContainer: (source, container, stamp) =>
      run(() => {
        const sql =
          "insert into container (source, path, stamp) values (?, ?, ?) on conflict do update set stamp = excluded.stamp"
        inTransaction(db, () => db.prepare(sql).run(source, container, stamp))
      }),
    rawLines: (source, key, kind, { onlyReadable = false } = {}) =>
      run(() => rawLines(db, source, key, kind, onlyReadable)),
    hasReadableRecords: (source, key) => run(() => hasReadableRecords(db, source, key)),
    writeUnit: async (write) => {
      const { writeUnit } = await import("./write-unit.ts")
      return run(() => writeUnit(db, write, platform))
    },
    archiveUnits: (source, keys) =>
      run(() =>
        inTransaction(db, () => {
          const archive = valueQuery(
            db,
            "update unit set state = 'archived' where source = ? and key = ? and state <> 'archived' returning id",
            "integer",
          )
          const ids = keys.flatMap((key) => archive.get(source, key) ?? [])
          const heirs = ids.flatMap((id) => heirsOf(db, id))
          // Without its stamp, a unit is read again by the next sync that can read it.
          for (const key of heirs)
            db.prepare("update unit set stamp = '' where source = ? and key = ?").run(source, key)
          return { archived: ids.length, heirs }
        }),
      ),
    renameUnit: (source, key, name) =>
      run(() => {
        const sql = "update or ignore unit set key = ?, path = ? where source = ? and key = ?"
        inTransaction(db, () => db.prepare(sql).run(name.key, name.path, source, key))
      }),
    saveUnreadable: (source, files) =>
      run(() => {
        const json = JSON.stringify(files)
        if (json === JSON.stringify(unreadableFiles(db, source))) return
        const sql = "insert or replace into meta (key, value) values ('unreadable:' || ?, ?)"
        inTransaction(db, () => db.prepare(sql).run(source, json))
      }),
    unreadable: (source) => run(() => unreadableFiles(db, source)),
    unitsWithSecrets: () => run(() => unitsWithSecrets(db, onDamage)),
    storedSources: () => run(() => unitSources(db)),
    sourceReport: () => run(() => sourceReport(db, onDamage)),
    revision: () => run(() => revision(db, historyId)),
    changes: (after, limit) => run(() => changes(db, historyId, after, limit)),
    resolve: (query, except) => run(() => findConversations(db, query, onDamage, except)),
    conversation: (ref) => run(() => loadConversation(db, ref, onDamage)),
    titles: (refs) => run(() => readTitles(db, refs)),
    list: (filter) => run(() => listConversations(db, filter, onDamage, platform)),
    spans: (filter) => run(() => conversationSpans(db, filter, platform)),
    messages: (ref, numbers) => run(() => loadMessages(db, ref, numbers, onDamage)),
    versions: (ref) => run(() => readVersions(db, ref, onDamage)),
    touching: (file) => run(() => conversationsTouching(db, file, platform)),
    usingModel: (model) => run(() => conversationsUsingModel(db, model)),
    tagged: (tag) => run(() => conversationsWithTag(db, tag)),
    keptOnlyHere: () => run(() => conversationsKeptOnlyHere(db)),
    filesOf: (ref) => run(() => filesOf(db, ref, onDamage)),
    editedFiles: (ref, limit) => run(() => editedFiles(db, ref, limit)),
    commandsOf: (ref) => run(() => commandsOf(db, ref, onDamage)),
    madeIn: (ref) => run(() => madeRows(db, ref, onDamage)),
    commits: (filter) => run(() => commitRows(db, filter, onDamage, platform)),
    work: (refs) => run(() => readWork(db, refs, onDamage)),
    around: async (ref, before, after) => {
      const { messagesAround } = await import("./around.ts")
      return run(() => messagesAround(db, ref, before, after))
    },
    stats: (except) => run(() => historyStats(db, onDamage, except)),
    collections: () => run(() => readCollections(db, onDamage)),
    documentsIn: (name) => run(() => documentsIn(db, name, onDamage)),
    saveCollection: async (collection) => {
      const { saveCollection } = await import("./collections.ts")
      return run(() => saveCollection(db, collection))
    },
    removeCollection: async (name) => {
      const { removeCollection } = await import("./collections.ts")
      return run(() => removeCollection(db, name))
    },
    removeDocuments: async (keys) => {
      const { removeDocuments } = await import("./collections.ts")
      return run(() => removeDocuments(db, keys))
    },
    projects: () => run(() => readProjects(db, onDamage)),
    busiestProjects: (limit, except) => run(() => busiestProjects(db, limit, onDamage, except)),
    conversationsIn: (projects) => run(() => conversationsIn(db, projects)),
    projectIdentities: () => run(() => projectIdentities(db, onDamage)),
    hasUnidentifiedProjects: () =>
      run(() => db.prepare("select 1 from project where stamp is null").get() !== undefined),
    projectFiles: (path) => run(() => projectFiles(db, path)),
    projectPullRequests: (path) => run(() => projectPullRequests(db, path)),
    projectCommits: () => run(() => projectCommits(db)),
    projectFolders: async (project) => {
      const { projectFolders } = await import("./project-paths.ts")
      return run(() => projectFolders(db, spellingsOf(db, project, platform)))
    },
    saveProjectIdentity: async (path, facts) => {
      const { saveGitFacts } = await import("./join-projects.ts")
      return run(() => inTransaction(db, () => saveGitFacts(db, path, facts)))
    },
    joinProject: async (folder, project, why) => {
      const { joinProject } = await import("./join-projects.ts")
      return run(() => inTransaction(db, () => joinProject(db, { folder, project, why }, platform)))
    },
    renameProject: async (project, folder) => {
      const { renameProject } = await import("./join-projects.ts")
      return run(() => inTransaction(db, () => renameProject(db, project, folder)))
    },
    keepApart: async (folder) => {
      const { keepApart } = await import("./join-projects.ts")
      return run(() => inTransaction(db, () => keepApart(db, folder, platform)))
    },
    splitProject: async (folder) => {
      const { splitProject } = await import("./join-projects.ts")
      return run(() => inTransaction(db, () => splitProject(db, folder, platform)))
    },
    importFrom: async (other, options) => {
      const { mergeHistory } = await import("./import-history.ts")
      const source = openDatabase(other, HISTORY_MIGRATIONS)
      try {
        return await run(() => mergeHistory(db, source, options))
      } finally {
        source.close()
      }
    },
    backup: async (file, beside) => {
      const { writeBackup } = await import("./backup.ts")
      return run(() => writeBackup(db, file, beside))
    },
    mark: (ref, change) => run(() => inTransaction(db, () => changeMarks(db, ref, change))),
    setPrivate: (project, isPrivate, isIn) =>
      run(() => inTransaction(db, () => markPrivate(db, [project], isPrivate, { isIn, platform }))),
    withSubagents: async (refs) => {
      const { withSubagents } = await import("./forget.ts")
      return run(() => {
        damagedIds(db, onDamage) // reports damaged rows: a subagent with one would be missing here
        return withSubagents(db, refs)
      })
    },
    family: async (refs) => {
      const { withRelatives } = await import("./forget.ts")
      return run(() => {
        damagedIds(db, onDamage)
        return withRelatives(db, refs)
      })
    },
    forget: async (refs, ownerOf) => {
      const { forgetInHistory } = await import("./forget.ts")
      return run(() => forgetInHistory(db, refs, ownerOf))
    },
    forgottenAmong: async (source, ids) => {
      const { forgottenAmong } = await import("./tombstones.ts")
      return run(() => forgottenAmong(db, source, ids))
    },
    forgotten: () => run(() => valueQuery(db, "select count(*) from tombstone", "integer").get()!),
    progress: () => run(() => metaJson<Progress>(db, "sync_progress")),
    saveProgress: (progress) =>
      run(() => {
        const sql = "insert or replace into meta (key, value) values ('sync_progress', ?)"
        inTransaction(db, () => db.prepare(sql).run(JSON.stringify(progress)))
      }),
    takeDamaged: async () => {
      const names = [...damagedNames]
      damagedNames.clear()
      return names
    },
    injuries: async (refs) => {
      const { injuriesOf } = await import("./rot/inspect.ts")
      return run(() => injuriesOf(db, refs))
    },
    heal: async (refs, { everywhere = false } = {}) => {
      const { heal } = await import("./rot/heal.ts")
      return run(() => heal(db, refs, everywhere))
    },
    seal: async (deadline) => {
      const { seal } = await import("./rot/seal.ts")
      return run(() => seal(db, deadline))
    },
    inspect: async () => {
      const { inspect } = await import("./rot/inspect.ts")
      return run(() => inspect(db))
    },
    check: () => run(() => problemsOf(db)),
    checkpoint: () => run(() => void emptyLog(db)),
    close: () => db.close(),
  }
}

/** Returns the keys of the other units that contain the conversations of which this unit is the owner. */
function heirsOf(db: Db, unitId: number): string[] {
  return valueQuery(
    db,
    `select distinct u.key from conversation c join claim k on k.native_id = c.native_id and k.authority = c.authority
         join unit u on u.id = k.unit_id and u.source = c.source
       where c.unit_id = ? and u.state = 'present' and k.live`,
    "text",
  ).all(unitId)
}

/** Prepares the database and returns the history's id. */
function prepareHistory(db: Db, path: string, platform: NodeJS.Platform): string {
  try {
    makeSpellingsEquallyPrivate(db, platform)
    reassignStored(db, (work) => inTransaction(db, work), platform)
    return ensureHistoryId(db)
  } catch (error) {
    const explanation = explainSchemaError(db, HISTORY_MIGRATIONS, error, path)
    db.close()
    throw explanation
  }
}

function ensureHistoryId(db: Db): string {
  const storedId = metaValue(db, "history_id")
  if (storedId !== undefined) return storedId
  return inTransaction(db, () => {
    db.prepare("insert or ignore into meta (key, value) values ('history_id', ?)").run(globalThis.crypto.randomUUID())
    return metaValue(db, "history_id")!
  })
}

function problemsOf(db: Db): string[] {
  const lines = valueQuery(db, "pragma integrity_check(20)", "text").all()
  const problems = lines.filter((line) => line !== "ok")
  return hasSchemaOf(db, HISTORY_MIGRATIONS) ? problems : ["its schema changed", ...problems]
}
