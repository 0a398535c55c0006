import { grouped } from "../../core/format.ts"
import type { LineOwner } from "../../learn/blame/owners.ts"

/** How many lines were explained by the team's hub, and how many by this machine's history. */
export function memoryNote(owners: readonly LineOwner[]): string {
  const known = owners.flatMap(({ worker }) => (worker ? [worker.ref.owner] : []))
  const team = known.filter((owner) => owner !== undefined)
  const names = [...new Set(team)].sort()
  const whose = names.length === 0 ? "" : ` (${names.slice(0, 5).join(", ")}${names.length > 5 ? ", …" : ""})`
  return `Lines from your team's hub: ${grouped(team.length)}${whose}; from this machine: ${grouped(known.length - team.length)}.`
}
