import { many, seconds } from "./words.ts"

type Synced = {
  busy: boolean
  complete: boolean
  added_messages: number
  duration_ms: number
  unreadable: readonly unknown[]
}

/** What the picker says about a sync, a sentence each; nothing where nothing is new. */
export function syncNews({ busy, complete, added_messages, duration_ms, unreadable }: Synced): string[] {
  return [
    ...(busy ? ["Another dex is reading right now."] : []),
    ...(!busy && added_messages > 0
      ? [`${many(added_messages, "new message")}, read in ${seconds(duration_ms)}.`]
      : []),
    ...(!busy && !complete ? ["Not everything is read yet: `dex sync` continues where this stopped."] : []),
    ...(unreadable.length > 0 ? [`${unreadable.length} could not be read: \`dex sources\` says why.`] : []),
  ]
}
