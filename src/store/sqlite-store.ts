import { formatRef, type Ref } from "../core/ref.ts"
import { type Db, explained, inTransaction, openDatabase } from "./database.ts"
import { HISTORY_MIGRATIONS } from "./migrations.ts"
import * as read from "./read.ts"
import type { Progress, Store } from "./store.ts"

/** The history in one SQLite file. What only writers need is loaded when somebody writes. */
export function openStore(path: string, { cacheKb }: { cacheKb?: number } = {}): Store {
  const db = openDatabase(path, HISTORY_MIGRATIONS, cacheKb)
  const historyId = identity(db)
  // SQLite answers at once; the promises are for the stores that cannot.
  const ask = async <T>(work: () => T): Promise<T> => {
    try {
      return work()
    } catch (error) {
      throw explained(error, path)
    }
  }
  const met = new Map<string, Ref>()
  const onDamage = (ref: Ref) => void met.set(formatRef(ref), { source: ref.source, id: ref.id })
  return {
    id: async () => historyId,
    knownUnits: (source) => ask(() => read.knownUnits(db, source)),
    knownUnit: (source, key) => ask(() => read.knownUnit(db, source, key)),
    knownContainers: (source) => ask(() => read.knownContainers(db, source)),
    saveContainer: (source, container, stamp) =>
      ask(() => {
        const sql =
          "insert into container (source, path, stamp) values (?, ?, ?) on conflict do update set stamp = excluded.stamp"
        inTransaction(db, () => db.prepare(sql).run(source, container, stamp))
      }),
    rawLines: (source, key, kind, { onlyWhole = false } = {}) =>
      ask(() => read.rawLines(db, source, key, kind, onlyWhole)),
    hasWholeRecords: (source, key) => ask(() => read.hasWholeRecords(db, source, key)),
    writeUnit: async (write) => {
      const { writeUnit } = await import("./write-unit.ts")
      return ask(() => writeUnit(db, write))
    },
    archiveUnits: (source, keys) =>
      ask(() =>
        inTransaction(db, () => {
          const archive = db.prepare(
            "update unit set state = 'archived' where source = ? and key = ? and state <> 'archived'",
          )
          return keys.reduce((count, key) => count + archive.run(source, key).changes, 0)
        }),
      ),
    saveUnreadable: (source, unreadable) =>
      ask(() => {
        const now = JSON.stringify(unreadable)
        const before = db.prepare("select value from meta where key = 'unreadable:' || ?").pluck().get(source) ?? "[]"
        if (now === before) return
        const sql = "insert or replace into meta (key, value) values ('unreadable:' || ?, ?)"
        inTransaction(db, () => db.prepare(sql).run(source, now))
      }),
    sourceReport: () => ask(() => read.sourceReport(db)),
    revision: () => ask(() => read.revision(db, historyId)),
    changes: (after, limit) => ask(() => read.changes(db, historyId, after, limit)),
    resolve: (query) => ask(() => read.resolve(db, query)),
    conversation: (ref) => ask(() => read.conversation(db, ref)),
    list: (filter) => ask(() => read.list(db, filter)),
    messages: (ref, numbers) => ask(() => read.messages(db, ref, numbers, onDamage)),
    versions: (ref) => ask(() => read.versions(db, ref)),
    touching: (file) => ask(() => read.touching(db, file)),
    usingModel: (model) => ask(() => read.usingModel(db, model)),
    filesOf: (ref) => ask(() => read.filesOf(db, ref)),
    editedFiles: (ref, limit) => ask(() => read.editedFiles(db, ref, limit)),
    commandsOf: (ref) => ask(() => read.commandsOf(db, ref, onDamage)),
    madeIn: (ref) => ask(() => read.madeIn(db, ref)),
    commits: (filter) => ask(() => read.commits(db, filter)),
    work: (refs) => ask(() => read.work(db, refs)),
    around: async (ref, before, after) => {
      const { around } = await import("./around.ts")
      return ask(() => around(db, ref, before, after))
    },
    stats: () => ask(() => read.stats(db)),
    collections: () => ask(() => read.collections(db)),
    documentsIn: (name) => ask(() => read.documentsIn(db, name)),
    saveCollection: async (collection) => {
      const { saveCollection } = await import("./collections.ts")
      return ask(() => saveCollection(db, collection))
    },
    removeCollection: async (name) => {
      const { removeCollection } = await import("./collections.ts")
      return ask(() => removeCollection(db, name))
    },
    removeDocuments: async (keys) => {
      const { removeDocuments } = await import("./collections.ts")
      return ask(() => removeDocuments(db, keys))
    },
    projects: () => ask(() => read.projects(db)),
    busiestProjects: (limit) => ask(() => read.busiestProjects(db, limit)),
    setPrivate: (project, isPrivate) =>
      ask(() => {
        const sql = "update project set private = ? where path = ?"
        return inTransaction(db, () => db.prepare(sql).run(isPrivate ? 1 : 0, project).changes > 0)
      }),
    family: async (refs) => {
      const { family } = await import("./forget.ts")
      return ask(() => family(db, refs))
    },
    forget: async (refs) => {
      const { forget } = await import("./forget.ts")
      return ask(() => forget(db, refs))
    },
    forgotten: () => ask(() => db.prepare("select count(*) from tombstone").pluck().get() as number),
    progress: () =>
      ask(() => {
        const value = db.prepare("select value from meta where key = 'sync_progress'").pluck().get() as
          | string
          | undefined
        return value === undefined ? undefined : (JSON.parse(value) as Progress)
      }),
    saveProgress: (progress) =>
      ask(() => {
        const sql = "insert or replace into meta (key, value) values ('sync_progress', ?)"
        inTransaction(db, () => db.prepare(sql).run(JSON.stringify(progress)))
      }),
    takeDamaged: async () => {
      const refs = [...met.values()]
      met.clear()
      return refs
    },
    check: () => ask(() => problemsOf(db)),
    checkpoint: () => ask(() => void db.pragma("wal_checkpoint(truncate)")),
    close: () => db.close(),
  }
}

function identity(db: Db): string {
  const find = db.prepare("select value from meta where key = 'history_id'").pluck()
  const known = find.get() as string | undefined
  if (known !== undefined) return known
  return inTransaction(db, () => {
    db.prepare("insert or ignore into meta (key, value) values ('history_id', ?)").run(globalThis.crypto.randomUUID())
    return find.get() as string
  })
}

function problemsOf(db: Db): string[] {
  const found = db.prepare("pragma integrity_check(20)").pluck().all() as string[]
  return found.filter((line) => line !== "ok")
}
