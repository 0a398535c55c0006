import { isoDate } from "../core/dates.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import { object, optional, text } from "../core/schema.ts"
import type { Dex } from "./context.ts"

// Says whether a later conversation or commits changed what a conversation is about.

export const changedFields = {
  changed_later: optional(
    object({ ref: text(), date: text() }, "A later conversation about the same thing that says that it changes it."),
  ),
  files_changed: optional(text("How many files that it edited have changed since, if more than half.")),
}

export type ChangedLater = { changed_later?: { ref: string; date: string }; files_changed?: string }

/** Returns a lookup. It finds nothing before dex has learned any facts, since a search does not begin to learn. */
export async function changesLookup(dex: Dex): Promise<(ref: Ref) => ChangedLater> {
  const knowledge = dex.isTeam ? undefined : await dex.topicFacts()
  if (!knowledge) return () => ({})
  const { changeAfter, changedFilesText } = await import("../learn/changes.ts")
  const known = new Map<string, ChangedLater>()
  const lookUp = ({ source, id }: Ref): ChangedLater => {
    const one = knowledge.turns.matchedConversation({ source, id })
    if (!one) return {}
    const later = changeAfter(knowledge, one, dex.now())
    return {
      changed_later: later && {
        ref: formatRef({ source: later.source, id: later.id }),
        date: isoDate(later.started_at).slice(0, 10),
      },
      files_changed: changedFilesText(knowledge, one.conversation),
    }
  }
  return (ref) => {
    const key = formatRef({ source: ref.source, id: ref.id })
    const found = known.get(key) ?? lookUp(ref)
    known.set(key, found)
    return found
  }
}

/** The lines that say it to a person. */
export function laterChangeLines({ changed_later: later, files_changed }: ChangedLater): string[] {
  return [
    ...(later ? [`Changed on ${later.date}, in ${later.ref}`] : []),
    ...(files_changed === undefined ? [] : [files_changed]),
  ]
}
