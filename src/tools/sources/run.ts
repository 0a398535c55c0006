import { isoDate } from "../../core/dates.ts"
import type { Dex } from "../context.ts"

export async function run(dex: Dex) {
  const store = await dex.store()
  const { connectors, machine } = await dex.syncDeps()
  const reports = new Map((await store.sourceReport()).map((report) => [report.source, report]))
  return {
    sources: connectors.map((connector) => {
      const report = reports.get(connector.source)
      return {
        source: connector.source,
        looked_in: connector.roots(machine),
        found: (report?.units ?? 0) - (report?.archived ?? 0),
        kept: report?.conversations ?? 0,
        kinds: report?.kinds ?? {},
        messages: report?.messages ?? 0,
        archived: report?.archived ?? 0,
        ...(report?.last_at !== undefined && { latest: isoDate(report.last_at) }),
        skipped: report?.skipped ?? {},
        unknown: report?.unknown ?? {},
        redactions: report?.redactions ?? {},
        unreadable: report?.unreadable ?? [],
      }
    }),
  }
}
