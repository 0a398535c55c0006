import { statSync } from "node:fs"
import { isoDate } from "../../core/dates.ts"
import { projectsHiddenFrom } from "../../search/scope.ts"
import type { Dex } from "../context.ts"
import { countPersonConversations } from "../kinds.ts"
import { currentSession, projectsHiddenFromCaller } from "../resolve.ts"
import type { StatsInput } from "./stats.ts"

const MAX_PROJECTS = 20

export async function run(dex: Dex, input: StatsInput) {
  const store = await dex.store()
  const hidden = projectsHiddenFrom(await store.projects(), dex.project, dex.machine.platform)
  const total = await store.stats(await projectsHiddenFromCaller(dex))
  const progress = await store.progress()
  const projects = input.summary ? [] : await store.busiestProjects(MAX_PROJECTS, hidden)
  const session = currentSession(dex)
  return {
    total_conversations: countPersonConversations(total.kinds),
    total_messages: total.messages,
    date_range: {
      earliest: total.earliest === undefined ? undefined : isoDate(total.earliest),
      latest: total.latest === undefined ? undefined : isoDate(total.latest),
    },
    sources: total.sources,
    kinds: total.kinds,
    projects: projects.map((project) => project.path),
    avg_tokens_per_conversation:
      total.conversations === 0 ? 0 : Math.round(total.estimated_tokens / total.conversations),
    text_bytes: total.text_bytes,
    // An agent does not get the size of the files, because they also contain private projects.
    disk_bytes: dex.caller === undefined ? databaseBytes(dex.home.history) + databaseBytes(dex.home.index) : undefined,
    session_id: session,
    sync: progress && progress.done < progress.total ? { done: progress.done, total: progress.total } : undefined,
  }
}

export function databaseBytes(database: string): number {
  return ["", "-wal"].reduce(
    (sum, suffix) => sum + (statSync(database + suffix, { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
}
