import { recordLater, runTool } from "../app/run.ts"
import { DexError } from "../core/error.ts"
import { readAs } from "../core/schema.ts"
import type { InputOf, OutputOf, Tool } from "../core/tool.ts"
import type { Html } from "../render/html/html.ts"
import type { ConversationRow } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { agentNamed, folderOnDisk, resolveConversation } from "../tools/resolve.ts"
import { isPrivate } from "../tools/subscriptions/delivery.ts"

export type PageRequest = {
  /** The parameters in the route's path, by name. */
  params: Record<string, string>
  query: URLSearchParams
  /** The path and query of this page. */
  address: string
  to: Addresses
  dex: Dex
  /** True if the facts read so far may be incomplete, because dex is still learning. */
  isLearning(): boolean
  /** Every request that changes something must contain this token. */
  actionToken: string
}

export type ViewPage = {
  title: string
  /** The navigation entry that is marked as current. */
  section?: "home" | "find" | "usage"
  body: Html
  /** The text in the search field at the top. */
  words?: string
  /** Further parameters that the search form at the top sends. */
  hiddenFields?: Record<string, string>
  /** True if the body is a fragment for a page that is already open, which is sent without the document around it. */
  isPart?: boolean
  /** A file to download instead of a page. */
  file?: { name: string; type: string; text: string }
}

export type PageRoute = { path: string; render(request: PageRequest): Promise<ViewPage> }

type ToolInput<T> = { [Name in keyof InputOf<T>]?: InputOf<T>[Name] }

/** Runs a tool as commands and servers do: with default values, a trace, and hidden characters removed from the output. */
export async function runToolForPage<T extends Tool<Dex>>(
  dex: Dex,
  tool: T,
  input: ToolInput<T>,
): Promise<OutputOf<T>> {
  const parsed = readAs(tool.input, input)
  if ("wrong" in parsed) throw new DexError("usage", parsed.wrong)
  const toolRun = await runTool(tool, dex, parsed.ok)
  recordLater(toolRun)
  return toolRun.output as OutputOf<T>
}

/** A dex that runs as if inside this project. Throws a DexError if the project is private and not the current one. */
export async function dexInProject(dex: Dex, project: string): Promise<Dex> {
  if (project === dex.project) return dex
  if (await isPrivate(dex, project))
    throw new DexError("private", `${project} is a private project. Run \`dex view\` inside that folder to see it.`)
  const folder = folderOnDisk(dex, project)
  return Object.create(dex, { project: { value: project }, place: { value: folder }, cwd: { value: folder } })
}

/**
 * Every address of the view. All are under `base`, which only this user's browser knows. A cookie alone would not do, because it
 * is not bound to a port.
 */
export function createAddresses(base: string) {
  const to = (path: string, query: Record<string, string | number | undefined> = {}) => {
    const parameters = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value))
    return `${base}/${path}${parameters.size === 0 ? "" : `?${parameters}`}`
  }
  const conversation = (ref: string, rest = "") => `c/${encodeURIComponent(ref)}${rest}`
  return {
    base,
    path: to,
    home: () => to(""),
    find: (query: Record<string, string | number | undefined> = {}) => to("find", query),
    usage: (query: Record<string, string | number | undefined> = {}) => to("usage", query),
    /** The address of a conversation, or of one of its messages. */
    read: (ref: string, number?: number) =>
      number === undefined ? to(conversation(ref)) : `${to(conversation(ref), { at: number })}#m${number}`,
    conversation: (ref: string, rest: string, query?: Record<string, string | number | undefined>) =>
      to(conversation(ref, `/${rest}`), query),
    file: (project: string, path: string, query: Record<string, string | number | undefined> = {}) =>
      to("file", { project, path, ...query }),
    commit: (project: string, commit: string) => to("commit", { project, commit }),
    decision: (id: string) => to(`decision/${encodeURIComponent(id)}`),
    fix: (id: string) => to(`fix/${encodeURIComponent(id)}`),
    asset: (name: string) => to(`assets/${name}`),
  }
}

export type Addresses = ReturnType<typeof createAddresses>

/** The address of a printed ref such as `claude_code:1f3c…#12`. */
export function addressOfRef(to: Addresses, ref: string): string {
  const [, conversation = ref, number] = /^(.*?)(?:#(\d+))?$/s.exec(ref)!
  return to.read(conversation, number === undefined ? undefined : Number(number))
}

/** The conversation that a page's address names, and its agent's name. */
export type RequestedConversation = { dex: Dex; row: ConversationRow; agent: string }

export async function requestedConversation({ dex, params }: PageRequest): Promise<RequestedConversation> {
  const { row } = await resolveConversation(dex, { id: params.ref ?? "" })
  return { dex, row, agent: (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source }
}
