import type { MessageWrite } from "./store.ts"

/** A message of a conversation and the id of the unit that contains it (`fromUnit`). `key` is the stored hash. */
export type UnitMessage = { key: Buffer; message: MessageWrite; fromUnit: number }

/**
 * Merges the messages of one conversation from several units (two roots, a copied or restored file). The result is the union of
 * their messages, each once. `incoming` are one unit's current messages and `stored` those stored from the other units, both in
 * order. If units disagree about the order, `leading` decides, regardless of which unit was read first.
 */
export function mergeMessages<T extends UnitMessage>(incoming: T[], stored: T[], leading: { key: Buffer }[]): T[] {
  const storedByKey = new Map(stored.map((entry) => [keyText(entry), entry]))
  const accepted = incoming.filter((entry) => {
    const storedMessage = storedByKey.get(keyText(entry))
    return !storedMessage || isBetterVersion(entry.message, storedMessage.message)
  })
  const acceptedKeys = new Set(accepted.map(keyText))
  const fromOthers = stored.filter((entry) => !acceptedKeys.has(keyText(entry)))
  const union = [...accepted, ...fromOthers]
  const live = new Map(union.filter(({ message }) => !message.superseded).map((entry) => [keyText(entry), entry]))
  // The position of a superseded message in a unit depends on when the source lost the message, so these messages are sorted by
  // their own time.
  const superseded = union.filter(({ message }) => message.superseded)
  const leadingMessages = leading.flatMap((entry) => live.get(keyText(entry)) ?? [])
  const leadingKeys = new Set(leadingMessages.map(keyText))
  const rest = (list: T[]) => list.filter((entry) => live.has(keyText(entry)) && !leadingKeys.has(keyText(entry)))
  return mergeByTime(
    mergeByTime(leadingMessages, mergeByTime(rest(accepted), rest(fromOthers))),
    superseded.sort(compareTimes),
  )
}

function compareTimes(a: UnitMessage, b: UnitMessage): number {
  return (a.message.at ?? 0) - (b.message.at ?? 0) || a.key.compare(b.key)
}

/**
 * True if `a` is the better version of a message: only `a` is still in its source, or `a` has more text. A truncated version
 * (copied while it was written, or in a rewritten file) therefore never replaces the complete one.
 */
function isBetterVersion(a: MessageWrite, b: MessageWrite): boolean {
  if (Boolean(a.superseded) !== Boolean(b.superseded)) return !a.superseded
  return textLength(a) > textLength(b)
}

function textLength(message: MessageWrite): number {
  return message.parts.reduce((sum, part) => sum + part.text.length + 1, 0)
}

/** Merges two ordered lists by time. A message without a time, or with one that is too early, takes that of the one before it. */
function mergeByTime<T extends UnitMessage>(first: T[], second: T[]): T[] {
  if (second.length === 0) return first
  const [a, b] = [runningTimes(first), runningTimes(second)]
  const merged: T[] = []
  let i = 0
  for (const [j, entry] of second.entries()) {
    while (i < first.length && isBefore(first[i]!, a[i]!, entry, b[j]!)) merged.push(first[i++]!)
    merged.push(entry)
  }
  return [...merged, ...first.slice(i)]
}

/** Breaks ties by key, so that the order in which units were read does not matter. */
function isBefore(a: UnitMessage, aTime: number, b: UnitMessage, bTime: number): boolean {
  return aTime === bTime ? a.key.compare(b.key) < 0 : aTime < bTime
}

function runningTimes(messages: UnitMessage[]): number[] {
  let latest = Number.NEGATIVE_INFINITY
  return messages.map(({ message }) => (latest = Math.max(latest, message.at ?? latest)))
}

export function keyText({ key }: { key: Buffer }): string {
  return key.toString("latin1")
}
