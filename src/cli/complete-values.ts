import { basename } from "node:path"
import { agents } from "../agents/registry.ts"
import { createDex } from "../app/dex.ts"
import { VERSION } from "../app/version.ts"
import { PERSONS_KINDS } from "../core/conversation.ts"
import { formatRef } from "../core/ref.ts"
import { safeLine } from "../render/terminal.ts"
import { hiddenFrom } from "../search/scope.ts"
import type { Dex } from "../tools/context.ts"

/** So many of the newest conversations: more than anybody looks through. */
const NEWEST = 40
const DESCRIPTION_CHARS = 70
/** A value stands on a line of its own, before a tab, and is no option. Whatever else is in it, the shells quote. */
const VALUE = /^(?!-)[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u

export type Completed = "refs" | "projects" | "agents"
type Value = { value: string; description: string }

/**
 * What a shell may offer for the word that is being typed: `value<tab>description` on each line. Reads only what is
 * there, and says nothing where that fails: nobody asked dex anything.
 */
export async function completeValues(kind: string | undefined, typed = ""): Promise<string> {
  const values = VALUES[kind as Completed]
  if (!values) return ""
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    if (kind !== "agents" && !dex.hasHistory()) return ""
    const offered = (await values(dex, typed)).filter(({ value }) => VALUE.test(value))
    const kept = offered.filter((one, i) => offered.findIndex(({ value }) => value === one.value) === i)
    return kept.map(({ value, description }) => `${value}\t${briefly(description)}\n`).join("")
  } catch {
    return "" // a shell would show it in the middle of the line
  } finally {
    dex.close()
  }
}

const VALUES: Record<Completed, (dex: Dex, typed: string) => Promise<Value[]>> = {
  refs: async (dex, typed) => {
    const store = await dex.store()
    const { rows } = await store.list({ kinds: PERSONS_KINDS, inside: dex.project, limit: NEWEST, offset: 0 })
    return rows.map(({ ref, title }) => ({
      // Without the agent's name it is shorter, and bash takes what stands after a colon for a word of its own.
      value: typed.includes(":") ? formatRef(ref) : ref.id,
      description: title?.text ?? "",
    }))
  },
  projects: async (dex) => {
    const projects = await (await dex.store()).projects()
    const hidden = new Set(hiddenFrom(projects, dex.project))
    const shown = projects.map(({ path }) => path).filter((path) => !hidden.has(path))
    return shown.map((path) => ({ value: basename(path), description: path }))
  },
  agents: async (dex) =>
    [...agents, ...(await dex.outside()).agents].map(({ source, name }) => ({ value: source, description: name })),
}

function briefly(text: string): string {
  const line = safeLine(text)
  return line.length > DESCRIPTION_CHARS ? `${line.slice(0, DESCRIPTION_CHARS - 1).toWellFormed()}…` : line
}
