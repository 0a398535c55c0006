import { runTool } from "../app/run.ts"
import { DexError } from "../core/error.ts"
import { readAs } from "../core/schema.ts"
import type { InputOf, OutputOf, Tool } from "../core/tool.ts"
import type { Html } from "../render/html/html.ts"
import type { ConversationRow } from "../store/history/store.ts"
import type { Dex } from "../tools/context.ts"
import { agentNamed, resolveConversation } from "../tools/resolve.ts"
import { isPrivate } from "../tools/subscriptions/delivery.ts"

/** What a page is made of. */
export type PageRequest = {
  /** By their names in the route's path. */
  params: Record<string, string>
  query: URLSearchParams
  /** Where this page is, from the root. */
  address: string
  to: Addresses
  dex: Dex
  /** Whether what was read so far may lack what dex is still learning. */
  isLearning(): boolean
  /** What must be sent back with anything that changes something. */
  actionToken: string
}

export type ViewPage = {
  title: string
  /** Where in the head's list it is. */
  section?: "home" | "find" | "usage"
  body: Html
  /** What the search field of the head holds. */
  words?: string
  /** What a search from that field keeps, by its names in the address. */
  kept?: Record<string, string>
  /** A part of a page that is there already: without head and foot. */
  isPart?: boolean
  /** It is saved under this name, and nothing else is shown. */
  file?: { name: string; type: string; text: string }
}

export type PageRoute = { path: string; render(request: PageRequest): Promise<ViewPage> }

type ToolInput<T> = { [Name in keyof InputOf<T>]?: InputOf<T>[Name] }

/** What a tool answers, as every face gets it: with its defaults, its trace, and every text as people see it. */
export async function askTool<T extends Tool<Dex>>(dex: Dex, tool: T, input: ToolInput<T>): Promise<OutputOf<T>> {
  const given = readAs(tool.input, input)
  if ("wrong" in given) throw new DexError("usage", given.wrong)
  const ran = await runTool(tool, dex, given.ok)
  setImmediate(() => void ran.record())
  return ran.output as OutputOf<T>
}

/** As if asked inside a project. Throws a DexError where that project is answered only inside itself, and this is elsewhere. */
export async function inProject(dex: Dex, project: string): Promise<Dex> {
  if (project === dex.project) return dex
  if (await isPrivate(dex, project))
    throw new DexError("private", `${project} is a private project. Run \`dex view\` inside that folder to see it.`)
  return Object.create(dex, { project: { value: project }, cwd: { value: project } })
}

/** Every address of the view. All are below `base`, a name that only this user's browser is told: a cookie knows no port. */
export function createAddresses(base: string) {
  const to = (path: string, query: Record<string, string | number | undefined> = {}) => {
    const given = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
    return `${base}/${path}${given.size === 0 ? "" : `?${given}`}`
  }
  const conversation = (ref: string, rest = "") => `c/${encodeURIComponent(ref)}${rest}`
  return {
    base,
    to,
    home: () => to(""),
    find: (query: Record<string, string | number | undefined> = {}) => to("find", query),
    usage: (query: Record<string, string | number | undefined> = {}) => to("usage", query),
    /** A conversation, or one message of it. */
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

/** The address of what a printed ref names: `claude_code:1f3c…#12`. */
export function addressOfRef(to: Addresses, ref: string): string {
  const [, whole = ref, number] = /^(.*?)(?:#(\d+))?$/s.exec(ref)!
  return to.read(whole, number === undefined ? undefined : Number(number))
}

/** The conversation that an address names. */
export type ConversationRead = { dex: Dex; row: ConversationRow; agent: string }

export async function conversationAsked({ dex, params }: PageRequest): Promise<ConversationRead> {
  const { row } = await resolveConversation(dex, { id: params.ref ?? "" })
  return { dex, row, agent: (await agentNamed(dex, row.ref.source))?.name ?? row.ref.source }
}
