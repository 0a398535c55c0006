import type { MessageWrite } from "./store.ts"

/** A message of a conversation and the unit (`by`) that contains it. `key` is the stored hash. */
export type UnitMessage = { key: Buffer; message: MessageWrite; by: number }

/**
 * Merges the messages of one conversation from several units (two roots, a copied or restored file). The result is the union of
 * their messages, each once. `incoming` are the unit's current messages, `stored` those already stored from the others, both in
 * order. If units disagree about the order, `leading` decides, regardless of which unit was read first.
 */
export function mergeMessages<T extends UnitMessage>(incoming: T[], stored: T[], leading: { key: Buffer }[]): T[] {
  const rivals = new Map(stored.map((one) => [keyText(one), one]))
  const accepted = incoming.filter((one) => {
    const rival = rivals.get(keyText(one))
    return !rival || isBetterVersion(one.message, rival.message)
  })
  const acceptedKeys = new Set(accepted.map(keyText))
  const fromOthers = stored.filter((one) => !acceptedKeys.has(keyText(one)))
  const all = [...accepted, ...fromOthers]
  const live = new Map(all.filter(({ message }) => !message.superseded).map((one) => [keyText(one), one]))
  // A superseded message's position in a unit depends on when the source lost it, so these are sorted by their own time.
  const superseded = all.filter(({ message }) => message.superseded)
  const leadingMessages = leading.flatMap((one) => live.get(keyText(one)) ?? [])
  const leadingKeys = new Set(leadingMessages.map(keyText))
  const rest = (list: T[]) => list.filter((one) => live.has(keyText(one)) && !leadingKeys.has(keyText(one)))
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

/** Merges two ordered lists by time. A message without a time stays next to the one before it. */
function mergeByTime<T extends UnitMessage>(first: T[], second: T[]): T[] {
  if (second.length === 0) return first
  const [a, b] = [runningTimes(first), runningTimes(second)]
  const merged: T[] = []
  let i = 0
  for (const [j, one] of second.entries()) {
    while (i < first.length && isBefore(first[i]!, a[i]!, one, b[j]!)) merged.push(first[i++]!)
    merged.push(one)
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
