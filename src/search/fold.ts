import { formatRef, type Ref, siblingRef } from "../core/ref.ts"
import type { ConversationRow, HistoryReader } from "../store/history/store.ts"
import { type Scope, withoutHidden } from "./scope.ts"

/**
 * The row in which a conversation is shown. All conversations that share a row have the same `name`. `parent` is set for a
 * subagent.
 */
export type SharedRow = { name: string; parent?: ConversationRow }

/** The maximum number of ancestors to follow. An imported history may contain longer chains, or circular ones. */
const MAX_PARENTS = 10

/**
 * Returns a function that finds the conversation in whose row a subagent is shown: the one that a person or a script started. If
 * that conversation is unknown, deleted, private or excluded by the filters, the subagent has its own row.
 */
export function createRowFolding(store: HistoryReader, filters: Scope["filters"]) {
  const visibleStore = withoutHidden(store, filters)
  const rowsByName = new Map<string, Promise<ConversationRow | undefined>>()
  const readRow = (ref: Ref) => {
    const name = formatRef(ref)
    const row = rowsByName.get(name) ?? visibleStore.conversation(ref)
    rowsByName.set(name, row)
    return row
  }
  return async (row: ConversationRow): Promise<SharedRow> => {
    let top = row
    for (let depth = 0; top.kind === "subagent" && top.parent && depth < MAX_PARENTS; depth++) {
      const starter = await readRow(siblingRef(top.ref, top.parent.id))
      if (!starter) break
      top = starter
    }
    const isFolded = top.kind !== "subagent" && top !== row && matchesFilters(top, filters)
    return isFolded ? { name: formatRef(top.ref), parent: top } : { name: formatRef(row.ref) }
  }
}

function matchesFilters(
  { ref, kind, project, started_at, ended_at }: ConversationRow,
  filters: Scope["filters"],
): boolean {
  const { projects, kinds, conversations, excludedConversations, from, to } = filters
  const isOneOf = (refs: readonly Ref[]) => refs.some((one) => formatRef(one) === formatRef(ref))
  return (
    (projects === undefined || (project !== undefined && projects.includes(project))) &&
    (kinds === undefined || kinds.includes(kind)) &&
    (conversations === undefined || isOneOf(conversations)) &&
    (excludedConversations === undefined || !isOneOf(excludedConversations)) &&
    (from === undefined || (ended_at !== undefined && ended_at >= from)) &&
    (to === undefined || (started_at !== undefined && started_at <= to))
  )
}
