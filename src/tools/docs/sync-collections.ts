import { join } from "node:path"
import { agreedDocuments } from "../../config/projects.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { DexError } from "../../core/error.ts"
import type { CollectionReport } from "../../ingest/documents.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import type { Dex } from "../context.ts"
import { requireCollections } from "./collections.ts"
import { isInPlace } from "./listed.ts"

const MAX_PROBLEMS = 20

/** Reads the named collections again, or all of them if `names` is empty. Uses the network only with `fetch`. */
export async function syncCollections(
  dex: Dex,
  { names, fetch = false }: { names: string[]; fetch?: boolean },
): Promise<CollectionReport[]> {
  const store = await dex.storeToWrite()
  const requestedNames = names.length === 0 ? undefined : await requireCollections(dex, names)
  const collections = (await store.collections()).filter(({ name }) => requestedNames?.includes(name) ?? true)
  if (collections.length === 0) return []
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "A sync is running. Try again when it is done.")
  try {
    const { syncCollection } = await import("../../ingest/documents.ts")
    const reports: CollectionReport[] = []
    const agreed = new Set(Object.values(agreedDocuments(dex.home)).flatMap(({ collections }) => collections))
    for (const collection of collections) {
      const isReplaced = agreed.has(collection.name) && !isInPlace(join(collection.root, collection.only ?? ""))
      if (isReplaced) {
        const report = await replacedReport(store, collection.name)
        await store.saveCollection({ ...collection, problems: [`${collection.name}: ${report.skipped[0]!.reason}`] })
        reports.push(report)
        continue
      }
      const version = fetch ? await fetchNewest(dex, collection.origin, collection.kind) : undefined
      const report = await syncCollection(store, collection, {
        signal: dex.signal,
        onProgress:
          dex.onProgress &&
          ((done, total) => dex.onProgress!({ phase: "reading", done, total, bytes: done, bytesTotal: total })),
      })
      await store.saveCollection({
        ...collection,
        ...withoutUndefined({ version }),
        synced_at: dex.now(),
        problems: report.skipped.slice(0, MAX_PROBLEMS).map(({ path, reason }) => `${path}: ${reason}`),
      })
      reports.push(report)
    }
    const { index } = await dex.syncDeps()
    await index.follow(store)
    await store.checkpoint()
    index.checkpoint()
    return reports
  } finally {
    lock.release()
  }
}

/** A repository's documents are not read through a link that took their place. What was read before stays. */
async function replacedReport(store: HistoryReader, name: string): Promise<CollectionReport> {
  const { documents } = await store.documentsIn(name)
  const skipped = [{ path: name, reason: "it is gone, or a link took its place" }]
  return { name, documents, changed: 0, removed: 0, skipped, complete: true }
}

/** Fetches a git repository again and returns its new version. Does nothing for other kinds of collection. */
async function fetchNewest(dex: Dex, origin: string, kind: string): Promise<string | undefined> {
  if (kind !== "git") return undefined
  const { resolveOrigin } = await import("../../documents/origins.ts")
  const { copyRepository } = await import("../../git/clone.ts")
  const cacheDir = repositoriesOf(dex)
  return (await resolveOrigin(origin, { cwd: dex.cwd, cacheDir, copyRepository, update: true })).version
}

export function repositoriesOf(dex: Dex): string {
  return join(dex.home.dir, "collections")
}
