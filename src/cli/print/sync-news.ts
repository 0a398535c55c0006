import { many, seconds } from "../../render/words.ts"

type Synced = {
  busy: boolean
  complete: boolean
  added_messages: number
  duration_ms: number
  unreadable: readonly unknown[]
}

export const ANOTHER_READS = "Another dex is reading right now."
export const NOT_ALL_READ = "Not everything is read yet: `dex sync` continues where this stopped."

export function sayAdded({ added_messages, duration_ms }: Pick<Synced, "added_messages" | "duration_ms">): string {
  return `${many(added_messages, "new message")}, read in ${seconds(duration_ms)}.`
}

export function sayUnreadable(unreadable: readonly unknown[]): string {
  return `${unreadable.length} could not be read: \`dex doctor sources\` says why.`
}

/** The picker's sentences about a sync; none if nothing is new. */
export function syncNews(synced: Synced): string[] {
  const { busy, complete, added_messages, unreadable } = synced
  return [
    ...(busy ? [ANOTHER_READS] : []),
    ...(!busy && added_messages > 0 ? [sayAdded(synced)] : []),
    ...(!busy && !complete ? [NOT_ALL_READ] : []),
    ...(unreadable.length > 0 ? [sayUnreadable(unreadable)] : []),
  ]
}
