import { array, isRecord, number, type RawRecord } from "../../core/record.ts"

/** How an entry of the log changes the session. */
const SNAPSHOT = 0
const SET = 1
const APPEND = 2
const DELETE = 3

/**
 * The session that a log of its changes leads to; undefined where no entry says what it began with. What cannot be applied is
 * counted by `skip`: a damaged line before it took its place away. The entries stay as they are.
 */
export function replayedSession(entries: Iterable<RawRecord>, skip: () => void): RawRecord | undefined {
  let session: RawRecord | undefined
  for (const entry of entries) {
    const value = structuredClone(entry.v)
    if (entry.kind === SNAPSHOT) session = isRecord(value) ? value : session
    else if (!session || !isApplied(session, entry, value)) skip()
  }
  return session
}

export function isLogEntry({ kind }: RawRecord): boolean {
  return kind === SNAPSHOT || kind === SET || kind === APPEND || kind === DELETE
}

function isApplied(session: RawRecord, { kind, k, i }: RawRecord, value: unknown): boolean {
  const path = array(k)
  const place = path.slice(0, -1).reduce<unknown>((at, step) => placeIn(at, step)?.get(), session)
  const last = placeIn(place, path.at(-1))
  if (!last) return false
  if (kind === DELETE) last.set(undefined)
  else if (kind === SET) last.set(value)
  else {
    const list = array(last.get())
    const length = number(i)
    last.set([...(length === undefined ? list : list.slice(0, Math.max(0, length))), ...array(value)])
  }
  return true
}

type Place = { get(): unknown; set(value: unknown): void }

/** A field of an object, or an item of a list where that leaves no holes. */
function placeIn(at: unknown, key: unknown): Place | undefined {
  if (Array.isArray(at)) {
    if (typeof key !== "number" || !Number.isInteger(key) || key < 0 || key > at.length) return undefined
    return { get: () => at[key] as unknown, set: (value) => void Reflect.set(at, key, value) }
  }
  if (!isRecord(at) || typeof key !== "string" || key === "__proto__") return undefined
  return { get: () => (Object.hasOwn(at, key) ? at[key] : undefined), set: (value) => void Reflect.set(at, key, value) }
}
