import { type BigIntStats, statSync } from "node:fs"
import { RefusedFile, readStart } from "../../files/read-file.ts"

/** What the files of another program's database say from outside. The same fingerprint: the same content. */
export type DatabaseState = {
  fingerprint: string
  /** All that a copy would take. */
  bytes: number
  walBytes: number
  hasShm: boolean
  hotJournal: boolean
}

/** Throws where there is none, and where what has its names is no regular file. */
export function readDatabaseState(file: string): DatabaseState {
  const main = statSync(file, { bigint: true })
  if (!main.isFile()) throw new RefusedFile("not a regular file")
  const { size, mtimeNs, ino } = main
  const [wal, journal, shm] = ["-wal", "-journal", "-shm"].map((suffix) => besideOf(file, suffix))
  const walBytes = Number(wal?.size ?? 0n)
  const hotJournal = journal !== undefined && journal.size > 0n && firstBytes(`${file}-journal`, 8).some((b) => b !== 0)
  return {
    fingerprint: [size, mtimeNs, ino, walBytes, walBytes > 0 ? wal?.mtimeNs : 0, hotJournal].join(":"),
    bytes: Number(size) + walBytes + Number(journal?.size ?? 0n),
    walBytes,
    hasShm: shm !== undefined,
    hotJournal,
  }
}

/** SQLite opens what has these names, and would wait at a pipe for ever: so each is looked at first. */
function besideOf(file: string, suffix: string): BigIntStats | undefined {
  const found = statSync(file + suffix, { bigint: true, throwIfNoEntry: false })
  if (found && !found.isFile()) throw new RefusedFile(`its ${suffix} is not a regular file`)
  return found
}

/** A finished transaction leaves no journal, an empty one, or (journal_mode=persist) one that begins with zeros. */
function firstBytes(path: string, count: number): Buffer {
  try {
    return readStart(path, count)
  } catch {
    return Buffer.alloc(0) // deleted since: the transaction is over
  }
}
