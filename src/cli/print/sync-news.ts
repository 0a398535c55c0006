import { many, seconds } from "../../render/words.ts"

type SyncResult = {
  busy: boolean
  complete: boolean
  added_messages: number
  duration_ms: number
  unreadable: readonly unknown[]
}

export const ANOTHER_IS_READING = "Another dex process is reading right now."
export const NOT_ALL_READ = "Not everything is read yet: `dex sync` continues where this stopped."

export function describeAdded({
  added_messages,
  duration_ms,
}: Pick<SyncResult, "added_messages" | "duration_ms">): string {
  return `${many(added_messages, "new message")}, read in ${seconds(duration_ms)}.`
}

export function describeUnreadable(unreadable: readonly unknown[]): string {
  return `${many(unreadable.length, "transcript")} could not be read. Run \`dex doctor sources\` to see why.`
}

/** Sentences about a sync, for the picker. Empty if there is nothing to report. */
export function syncNews(result: SyncResult): string[] {
  const { busy, complete, added_messages, unreadable } = result
  return [
    ...(busy ? [ANOTHER_IS_READING] : []),
    ...(!busy && added_messages > 0 ? [describeAdded(result)] : []),
    ...(!busy && !complete ? [NOT_ALL_READ] : []),
    ...(unreadable.length > 0 ? [describeUnreadable(unreadable)] : []),
  ]
}
