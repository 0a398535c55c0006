import type { Kind, Role, SourceId } from "../core/conversation.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { IndexFilter } from "../store/index-query.ts"
import type { Store } from "../store/store.ts"

/** Where to look. Every filter narrows; together they must all hold. */
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
  /** The project in which the question is asked. */
  inside?: string
}

export type Scope = {
  filters: Omit<IndexFilter, "match">
  /** Private projects that the filters would otherwise let in. */
  hiddenProjects: string[]
}

/** The filters as the index takes them. Undefined when one of them can match nothing. */
export async function scopeOf(store: Store, input: Filters): Promise<Scope | undefined> {
  const filters: Scope["filters"] = {}
  const wanted = input.project?.toLowerCase()
  const projects = await store.projects()
  const hiddenProjects = projects
    .filter((project) => project.private && project.path !== input.inside)
    .map((project) => project.path)
  if (wanted !== undefined) {
    filters.projects = projects.map((project) => project.path).filter((path) => path.toLowerCase().includes(wanted))
    if (filters.projects.length === 0) return undefined
  }
  if (hiddenProjects.length > 0) filters.excludedProjects = hiddenProjects
  if (input.sources) filters.sources = input.sources
  if (input.kinds) filters.kinds = input.kinds
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

function inAll([first = [], ...others]: Ref[][]): Ref[] {
  const names = others.map((refs) => new Set(refs.map(formatRef)))
  return first.filter((ref) => names.every((set) => set.has(formatRef(ref))))
}
