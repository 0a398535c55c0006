import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { formatRef, type Ref } from "../../../core/ref.ts"

// The conversations that commands found damaged while they read, one ref a line. Not in the database: whoever reads
// never waits for a writer. The next sync repairs what it can of them and takes them off the list.

const MOST_NOTED = 10_000

export function damageFile(dexDir: string): string {
  return join(dexDir, "damaged")
}

/** Of these names, those that are refs. Everything else is looked at by every sync anyway. */
export function noteDamage(file: string, names: readonly string[]): void {
  const known = new Set(notedDamage(file).map(formatRef))
  const fresh = names.filter((name) => refOf(name) && !known.has(name))
  if (fresh.length === 0 || known.size > MOST_NOTED) return
  try {
    appendFileSync(file, fresh.map((ref) => `${ref}\n`).join(""), { mode: 0o600 })
  } catch {
    // A read-only home: whoever reads it next notices it again.
  }
}

export function notedDamage(file: string): Ref[] {
  const refs = new Map(
    readLines(file)
      .flatMap((line) => refOf(line) ?? [])
      .map((ref) => [formatRef(ref), ref]),
  )
  return [...refs.values()]
}

/** Takes these off the list. What others note meanwhile stays. */
export function dropDamage(file: string, refs: readonly Ref[]): void {
  const gone = new Set(refs.map(formatRef))
  const lines = readLines(file)
  const kept = lines.filter((line) => !gone.has(line))
  if (kept.length === lines.length) return
  if (kept.length === 0) rmSync(file, { force: true })
  else writeFileSync(file, kept.map((line) => `${line}\n`).join(""), { mode: 0o600 })
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean)
  } catch {
    return [] // nothing was ever damaged
  }
}

function refOf(line: string): Ref | undefined {
  const colon = line.indexOf(":")
  const source = line.slice(0, colon)
  return /^[a-z][a-z0-9_]*$/.test(source) ? { source, id: line.slice(colon + 1) } : undefined
}
