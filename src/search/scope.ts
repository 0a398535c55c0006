import type { Kind, Role, SourceId } from "../core/conversation.ts"
import { isSamePath } from "../core/path-key.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { Collection, HistoryReader, ProjectRow } from "../store/history/store.ts"
import type { IndexFilter } from "../store/index/query.ts"
import type { SearchIndex } from "../store/index/search-index.ts"

/** The filters of a search. A result must match all of them. */
export type Filters = {
  sources?: SourceId[]
  project?: string
  from?: number
  to?: number
  file?: string
  model?: string
  tag?: string
  /** Only conversations that the agents have deleted. */
  archived?: boolean
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
  /** These filters match nothing if their list of projects or of conversations is empty. */
  filters: Omit<IndexFilter, "match">
  /** The filters for matches in private projects. Undefined if there can be none. */
  hidden?: Omit<IndexFilter, "match">
}

/** Builds the filters for the index. Returns undefined if nothing can match, not even in a private project. */
export async function scopeOf(
  store: HistoryReader,
  input: Filters,
  platform = process.platform,
): Promise<Scope | undefined> {
  const filters: Scope["filters"] = {}
  const projects = await store.projects(input.project === undefined ? "private" : undefined)
  const hiddenProjects = projectsHiddenFrom(projects, input.inside, platform)
  const wantedProjects = input.project === undefined ? undefined : projectsNamed(projects, input.project)
  const isWanted = (path: string) => wantedProjects === undefined || wantedProjects.includes(path)
  if (wantedProjects !== undefined) filters.projects = wantedProjects.filter((path) => !hiddenProjects.includes(path))
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
  if (input.tag !== undefined) chosen.push(await store.tagged(input.tag))
  if (input.archived) chosen.push(await store.keptOnlyHere())
  const conversations = chosen.length > 0 ? intersectRefs(chosen) : undefined
  const scope =
    hiddenProjects.length === 0
      ? { filters: { ...filters, ...(conversations && { conversations }) } }
      : await splitByPrivacy(store, filters, { hiddenProjects, isWanted, conversations })
  return canMatch(scope.filters) || scope.hidden ? scope : undefined
}

/**
 * Separates the filters for private projects from the filters for all other projects. A name that occurs only in a private
 * project must give the same answer as a name that does not exist.
 */
async function splitByPrivacy(
  store: HistoryReader,
  filters: Scope["filters"],
  { hiddenProjects, isWanted, conversations }: PrivacySplitInput,
): Promise<Scope> {
  const projects = hiddenProjects.filter(isWanted)
  const visible = { ...filters, excludedProjects: hiddenProjects }
  if (!conversations) return { filters: visible, ...(projects.length > 0 && { hidden: { ...filters, projects } }) }
  const names = new Set((await store.conversationsIn(hiddenProjects)).map(formatRef))
  const [visibleRefs, hiddenRefs] = [false, true].map((isHidden) =>
    conversations.filter((ref) => names.has(formatRef(ref)) === isHidden),
  )
  const hidden = { ...filters, projects, conversations: hiddenRefs! }
  return { filters: { ...visible, conversations: visibleRefs! }, ...(canMatch(hidden) && { hidden }) }
}

type PrivacySplitInput = {
  hiddenProjects: string[]
  isWanted: (path: string) => boolean
  conversations: Ref[] | undefined
}

export function canMatch({ projects, conversations }: Scope["filters"]): boolean {
  return projects?.length !== 0 && conversations?.length !== 0
}

/**
 * Returns a view of the index without these projects, so that their messages affect no count, ranking or correction. Returns the
 * index itself if there is nothing to leave out.
 */
export async function indexWithout(
  store: HistoryReader,
  index: SearchIndex,
  projects: readonly string[] = [],
): Promise<SearchIndex> {
  if (projects.length === 0) return index
  const scope = await index.scopeWithout(await store.conversationsIn(projects))
  if (scope.others.length === 0) return index
  return (await import("../store/index/scoped.ts")).scopedIndex(index, scope, "private")
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

/** The paths of the projects of which a folder or a remote contains this text. */
export function projectsNamed(projects: readonly ProjectRow[], typed: string): string[] {
  const part = typed.toLowerCase()
  return projects
    .filter(({ path, names = [] }) => [path, ...names].some((name) => name.toLowerCase().includes(part)))
    .map(({ path }) => path)
}

/** Returns the paths of all private projects except the one in which the search runs. */
export function projectsHiddenFrom(
  projects: readonly ProjectRow[],
  inside: string | undefined,
  platform = process.platform,
) {
  const isHere = (path: string) => inside !== undefined && isSamePath(path, inside, platform)
  return projects.filter((project) => project.private && !isHere(project.path)).map((project) => project.path)
}

/**
 * Builds the filters that select or exclude documents. Documents of other projects are excluded unless their collection is named.
 */
function documentsOf(known: Collection[], { among, collections, noGlobal, inside }: Filters): Partial<IndexFilter> {
  if (among === "history") return known.length > 0 ? { excludedKinds: ["document"] } : {}
  const kindFilter: Partial<IndexFilter> = among === "docs" || collections ? { kinds: ["document"] } : {}
  if (collections) return { ...kindFilter, collections }
  const unsearched = known.filter((collection) => !isSearchedByDefault(collection, { noGlobal, inside }))
  return { ...kindFilter, ...(unsearched.length > 0 && { excludedCollections: unsearched.map(({ name }) => name) }) }
}

/** Returns true if this collection is searched without being named. */
export function isSearchedByDefault(
  { project }: Pick<Collection, "project">,
  { noGlobal, inside }: { noGlobal: boolean | undefined; inside: string | undefined },
): boolean {
  if (project === undefined) return !noGlobal
  return inside !== undefined && isSamePath(project, inside)
}

/** The refs that all of these lists contain. */
export function intersectRefs([first = [], ...others]: Ref[][]): Ref[] {
  const names = others.map((refs) => new Set(refs.map(formatRef)))
  return first.filter((ref) => names.every((set) => set.has(formatRef(ref))))
}
