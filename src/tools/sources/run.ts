import type { Basis } from "../../agents/kit/agent.ts"
import type { Machine } from "../../agents/kit/connector.ts"
import { allRoots, type Roots } from "../../agents/kit/places.ts"
import { agents, isDexSource } from "../../agents/registry.ts"
import { findUnreadStores } from "../../agents/unread.ts"
import type { SourceId } from "../../core/conversation.ts"
import { isoDate } from "../../core/dates.ts"
import { lookAt } from "../../core/look-at.ts"
import type { Dex } from "../context.ts"
import { unknownTablesOf } from "../unknown-tables-of.ts"

export async function run(dex: Dex) {
  const store = await dex.store()
  const reports = new Map((await store.sourceReport()).map((report) => [report.source, report]))
  const tables = await unknownTablesOf(dex, [...reports.values()])
  return {
    sources: (await readAgents(dex)).map(({ source, name, basis, roots }) => {
      const report = reports.get(source)
      const possibleRoots = isDexSource(source) ? roots(dex.machine) : allRoots(roots, dex.machine)
      const existingRoots = possibleRoots.filter((path) => lookAt(path) !== undefined)
      return {
        source,
        name,
        basis,
        is_there: existingRoots.length > 0,
        looked_in: [...new Set([...roots(withoutOtherHomes(dex.machine)), ...existingRoots])],
        found: (report?.units ?? 0) - (report?.archived ?? 0),
        kept: report?.conversations ?? 0,
        kinds: report?.kinds ?? {},
        messages: report?.messages ?? 0,
        archived: report?.archived ?? 0,
        latest: report?.last_at === undefined ? undefined : isoDate(report.last_at),
        skipped: report?.skipped ?? {},
        unknown: report?.unknown ?? {},
        redactions: report?.redactions ?? {},
        unreadable: report?.unreadable ?? [],
        unknown_tables: tables.get(source),
      }
    }),
    unread: findUnreadStores(dex.machine),
  }
}

type AgentToRead = { source: SourceId; name: string; basis?: Basis; roots: Roots }

/** The agents that dex reads, and those that the user added. Loads only the connectors of the latter. */
async function readAgents(dex: Dex): Promise<AgentToRead[]> {
  const builtIn = agents.flatMap(({ source, name, basis, roots, isExported }) =>
    roots || isExported ? [{ source, name, basis, roots: roots ?? (() => []) }] : [],
  )
  const outside = (await dex.outsideAgents()).agents.map(async ({ source, name, connector }) => {
    const loaded = await connector()
    return { source, name, roots: (machine: Machine) => loaded.roots(machine) }
  })
  return [...builtIn, ...(await Promise.all(outside))]
}

function withoutOtherHomes({ home, env, platform }: Machine): Machine {
  return { home, env, platform }
}
