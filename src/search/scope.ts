import type { Kind, Role, SourceId } from "../core/conversation.ts"
import { isSamePath } from "../core/path-key.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { Collection, HistoryReader, ProjectRow } from "../store/history/store.ts"
import type { IndexFilter } from "../store/index/query.ts"

/** The filters of a search. A result must match all of them. */
export type Filters = {
  sources?: SourceId[]
  project?: string
  from?: number
  to?: number
  file?: string
  model?: string
  roles?: Role[]
  tools?: string[]
  conversation?: Ref
  excludedConversations?: Ref[]
  kinds?: Kind[]
  /** Where to search: in conversations, in documents, or in both (the default). */
  among?: "history" | "docs" | "all"
  /** Searches only documents of these collections. */
  collections?: string[]
  /** Excludes documents that belong to no project. */
  noGlobal?: boolean
  /** The project in which the search runs. */
  inside?: string
}

export type Scope = {
  filters: Omit<IndexFilter, "match">
  /** Private projects that would match the filters. */
  hiddenProjects: string[]
}

/** Builds the filters for the index. Returns undefined if one of them can match nothing. */
export async function scopeOf(
  store: HistoryReader,
  input: Filters,
  platform = process.platform,
): Promise<Scope | undefined> {
  const filters: Scope["filters"] = {}
  const wanted = input.project?.toLowerCase()
  const projects = await store.projects()
  const hiddenProjects = projectsHiddenFrom(projects, input.inside, platform)
  if (wanted !== undefined) {
    filters.projects = projects.map((project) => project.path).filter((path) => path.toLowerCase().includes(wanted))
    if (filters.projects.length === 0) return undefined
  }
  if (hiddenProjects.length > 0) filters.excludedProjects = hiddenProjects
  if (input.sources) filters.sources = input.sources
  if (input.kinds) filters.kinds = input.kinds
  Object.assign(filters, documentsOf(await store.collections(), input))
  if (input.roles) filters.roles = input.roles
  if (input.tools) filters.tools = input.tools
  if (input.from !== undefined) filters.from = input.from
  if (input.to !== undefined) filters.to = input.to
  if (input.excludedConversations) filters.excludedConversations = input.excludedConversations
  const chosen: Ref[][] = []
  if (input.conversation) chosen.push([input.conversation])
  if (input.file !== undefined) chosen.push(await store.touching(input.file))
  if (input.model !== undefined) chosen.push(await store.usingModel(input.model))
  if (chosen.length > 0) {
    filters.conversations = inAll(chosen)
    if (filters.conversations.length === 0) return undefined
  }
  const shown =
    wanted === undefined ? hiddenProjects : hiddenProjects.filter((path) => path.toLowerCase().includes(wanted))
  return { filters, hiddenProjects: shown }
}

/** Hides excluded projects again, because the index may not know yet that a conversation belongs to a private project. */
export function withoutHidden(store: HistoryReader, { excludedProjects }: Scope["filters"]): HistoryReader {
  if (!excludedProjects) return store
  const hidden = new Set(excludedProjects)
  return {
    ...store,
    conversation: async (ref) => {
      const row = await store.conversation(ref)
      return row?.project !== undefined && hidden.has(row.project) ? undefined : row
    },
  }
}

/** All private projects except the one in which the search runs. */
export function projectsHiddenFrom(
  projects: readonly ProjectRow[],
  inside: string | undefined,
  platform = process.platform,
) {
  const isHere = (path: string) => inside !== undefined && isSamePath(path, inside, platform)
  return projects.filter((project) => project.private && !isHere(project.path)).map((project) => project.path)
}

/**
 * Selects documents. Those of other projects are excluded unless their collection is named. If there are no documents, no filter
 * is added.
 */
function documentsOf(known: Collection[], { among, collections, noGlobal, inside }: Filters): Partial<IndexFilter> {
  if (among === "history") return known.length > 0 ? { excludedKinds: ["document"] } : {}
  const only: Partial<IndexFilter> = among === "docs" || collections ? { kinds: ["document"] } : {}
  if (collections) return { ...only, collections }
  const elsewhere = known.filter((collection) => !isSearchedByDefault(collection, { noGlobal, inside }))
  return { ...only, ...(elsewhere.length > 0 && { excludedCollections: elsewhere.map(({ name }) => name) }) }
}

/** Whether this collection is searched without being named. */
export function isSearchedByDefault(
  { project }: Pick<Collection, "project">,
  { noGlobal, inside }: { noGlobal: boolean | undefined; inside: string | undefined },
): boolean {
  if (project === undefined) return !noGlobal
  return inside !== undefined && isSamePath(project, inside)
}

function inAll([first = [], ...others]: Ref[][]): Ref[] {
  const names = others.map((refs) => new Set(refs.map(formatRef)))
  return first.filter((ref) => names.every((set) => set.has(formatRef(ref))))
}
