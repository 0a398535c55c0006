import { grouped } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import type { LineOwner } from "../../learn/blame/owners.ts"
import type { Dex } from "../context.ts"

/** A note on how many lines were explained by the team's hub, and how many by this machine's history. */
export function memoryNote(owners: readonly LineOwner[]): string {
  const explained = owners.flatMap(({ worker }) => (worker ? [worker.ref.owner] : []))
  const teamOwners = explained.filter((owner) => owner !== undefined)
  const names = [...new Set(teamOwners)].sort()
  const memberList = names.length === 0 ? "" : ` (${names.slice(0, 5).join(", ")}${names.length > 5 ? ", …" : ""})`
  return `Lines from your team's hub: ${grouped(teamOwners.length)}${memberList}; from this machine: ${grouped(explained.length - teamOwners.length)}.`
}

/** A note that names the people in whose imported conversations lines were written. */
export async function importedNotes(dex: Dex, owners: readonly LineOwner[]): Promise<string[]> {
  const workers = new Map(owners.flatMap(({ worker }) => (worker ? [[formatRef(worker.ref), worker.ref]] : [])))
  if (workers.size === 0) return []
  const store = await dex.store()
  const texts: string[] = []
  for (const [name, ref] of workers) {
    const person = ref.owner === undefined ? (await store.conversation(ref))?.imported_from : undefined
    if (person !== undefined) texts.push(`${name} is from ${person}`)
  }
  return texts.length === 0 ? [] : [`Imported: ${texts.join(", ")}.`]
}
