import { createCounts } from "../../core/by-name.ts"
import type { SourceId } from "../../core/conversation.ts"
import { lookAt } from "../../core/look-at.ts"
import { formatRef } from "../../core/ref.ts"
import { PRIVATE_RULE } from "../../redact/rules.ts"
import { projectsHiddenFrom } from "../../search/scope.ts"
import type { UnitWithSecrets } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"

/**
 * Adds up what syncs removed, by file. Reads none of these files: the counts are those of the last time that dex read them. Text
 * that the person marked as private is not counted, because there is nothing to replace.
 */
export async function runSecrets(dex: Dex) {
  if (!dex.hasHistory()) return { secrets: 0, kinds: {}, files: [], in_private_projects: 0 }
  const store = await dex.storeToWrite()
  const hiddenProjects = new Set(projectsHiddenFrom(await store.projects(), dex.project, dex.machine.platform))
  const databases = new Map<SourceId, ReadonlyMap<string, string>>()
  const files = new Map<string, ReturnType<typeof fileWithSecrets>>()
  const kindsOfPresent = createCounts()
  let in_private_projects = 0
  for (const unit of await store.unitsWithSecrets()) {
    const { source, path, redactions, conversations, projects } = unit
    const kinds = Object.entries(redactions).filter(([rule]) => rule !== PRIVATE_RULE)
    const secrets = kinds.reduce((sum, [, count]) => sum + count, 0)
    if (secrets === 0) continue
    if (projects.some((project) => hiddenProjects.has(project))) {
      in_private_projects += secrets
      continue
    }
    if (!databases.has(source)) databases.set(source, await store.knownContainers(source))
    const state = stateOf(unit, databases.get(source)!.has(path))
    const name = JSON.stringify([state, source, path])
    const file = files.get(name) ?? fileWithSecrets(source, path, state)
    files.set(name, file)
    file.secrets += secrets
    file.conversations.push(...conversations.map((id) => formatRef({ source, id })))
    for (const [rule, count] of kinds) {
      file.kinds.add(rule, count)
      if (state === "present") kindsOfPresent.add(rule, count)
    }
  }
  const sortedFiles = [...files.values()]
    .sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || b.secrets - a.secrets)
    .map((file) => ({ ...file, kinds: file.kinds.all() }))
  const present = sortedFiles.filter(({ state }) => state === "present")
  return {
    secrets: present.reduce((sum, file) => sum + file.secrets, 0),
    kinds: kindsOfPresent.all(),
    files: sortedFiles,
    in_private_projects,
  }
}

const STATES = ["present", "gone", "other_machine"] as const
type State = (typeof STATES)[number]

function fileWithSecrets(source: SourceId, path: string, state: State) {
  return { source, path, state, secrets: 0, kinds: createCounts(), conversations: [] as string[] }
}

function stateOf({ path, isArchived, isImported }: UnitWithSecrets, isDatabase: boolean): State {
  if (isImported) return "other_machine"
  // A conversation that its agent deleted is gone, even if the database that contained it still exists.
  if (isArchived && isDatabase) return "gone"
  // If the path itself contained a secret, it is not stored completely, so it cannot be looked up.
  const exists = path.includes("[REDACTED:") ? !isArchived : lookAt(path) !== undefined
  return exists ? "present" : "gone"
}
