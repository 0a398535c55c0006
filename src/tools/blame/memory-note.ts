import { grouped } from "../../core/format.ts"
import type { LineOwner } from "../../learn/blame/owners.ts"

/** A note on how many lines were explained by the team's hub, and how many by this machine's history. */
export function memoryNote(owners: readonly LineOwner[]): string {
  const explained = owners.flatMap(({ worker }) => (worker ? [worker.ref.owner] : []))
  const team = explained.filter((owner) => owner !== undefined)
  const names = [...new Set(team)].sort()
  const memberList = names.length === 0 ? "" : ` (${names.slice(0, 5).join(", ")}${names.length > 5 ? ", …" : ""})`
  return `Lines from your team's hub: ${grouped(team.length)}${memberList}; from this machine: ${grouped(explained.length - team.length)}.`
}
