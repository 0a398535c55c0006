import { runTool } from "../app/run.ts"
import { DexError } from "../core/error.ts"
import { readAs } from "../core/schema.ts"
import type { InputOf, OutputOf, Tool } from "../core/tool.ts"
import type { Html } from "../render/html/html.ts"
import type { Dex } from "../tools/context.ts"
import { isPrivate } from "../tools/subscriptions/delivery.ts"
import type { Addresses } from "./address.ts"

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
