import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { formatRef, type Ref } from "../../../core/ref.ts"

// The conversations that commands found damaged while reading, one ref per line. They are not in the database, so that readers
// never wait for a writer. The next sync repairs what it can and removes them from the list.

const MAX_LISTED = 10_000

export function damageFile(dexDir: string): string {
  return join(dexDir, "damaged")
}

/** Adds the refs among these names. Damage outside of conversations is not listed, because every sync checks for it anyway. */
export function noteDamage(file: string, names: readonly string[]): void {
  const listed = new Set(listDamage(file).map(formatRef))
  const newNames = names.filter((name) => refOf(name) && !listed.has(name))
  if (newNames.length === 0 || listed.size > MAX_LISTED) return
  try {
    appendFileSync(file, newNames.map((ref) => `${ref}\n`).join(""), { mode: 0o600 })
  } catch {
    // dex's folder is read-only. The next reader will notice the damage again.
  }
}

export function listDamage(file: string): Ref[] {
  const refs = new Map(
    readLines(file)
      .flatMap((line) => refOf(line) ?? [])
      .map((ref) => [formatRef(ref), ref]),
  )
  return [...refs.values()]
}

/**
 * Removes these refs. An entry that another process adds at the same moment may be lost: the next command that notices the damage
 * adds it again.
 */
export function dropDamage(file: string, refs: readonly Ref[]): void {
  const removed = new Set(refs.map(formatRef))
  const lines = readLines(file)
  const remaining = lines.filter((line) => !removed.has(line))
  if (remaining.length === lines.length) return
  if (remaining.length === 0) rmSync(file, { force: true })
  else writeFileSync(file, remaining.map((line) => `${line}\n`).join(""), { mode: 0o600 })
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean)
  } catch {
    return [] // the file does not exist until the first entry is added
  }
}

function refOf(line: string): Ref | undefined {
  const colon = line.indexOf(":")
  const source = line.slice(0, colon)
  return /^[a-z][a-z0-9_]*$/.test(source) ? { source, id: line.slice(colon + 1) } : undefined
}
