import { formatRef, type Ref } from "../../core/ref.ts"
import type { Html } from "../../render/html/html.ts"
import type { HistoryReader } from "../../store/history/store.ts"

/** Enough for a thousand messages and more. The oldest go first. */
const MOST_CHARS = 4_000_000

type Kept = { stamp: string; shown: Html | undefined }
type KeptHtml = { byMessage: Map<string, Kept>; chars: number }

/** Of each history, what was made of its messages. Another one, or one that was opened anew, begins with nothing. */
const keptOf = new WeakMap<HistoryReader, KeptHtml>()

/**
 * The HTML of a message, made once for each version of it: the stamp says the versions of everything that it shows.
 */
export function keptHtml(
  store: HistoryReader,
  message: { ref: Ref; number: number; stamp: string },
  make: () => Html | undefined,
): Html | undefined {
  const kept = keptOf.get(store) ?? { byMessage: new Map(), chars: 0 }
  keptOf.set(store, kept)
  const name = `${formatRef(message.ref)}#${message.number}`
  const known = kept.byMessage.get(name)
  if (known) drop(kept, name, known)
  const now = known?.stamp === message.stamp ? known : { stamp: message.stamp, shown: make() }
  kept.byMessage.set(name, now)
  kept.chars += sizeOf(now)
  for (const [oldest, one] of kept.byMessage) {
    if (kept.chars <= MOST_CHARS) break
    drop(kept, oldest, one)
  }
  return now.shown
}

function drop(kept: KeptHtml, name: string, one: Kept): void {
  kept.byMessage.delete(name)
  kept.chars -= sizeOf(one)
}

function sizeOf({ stamp, shown }: Kept): number {
  return stamp.length + (shown?.html.length ?? 0)
}
