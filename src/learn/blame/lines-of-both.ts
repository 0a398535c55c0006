import { refFrom } from "../../core/ref.ts"
import type { LineRows } from "./facts.ts"
import { keysSent, type SentLines } from "./lines-about.ts"

/**
 * This machine's lines and a team's as one. What is known here counts as this machine's: a copy of it on the hub adds nothing. The hub's
 * numbers are its own, so they are below zero here.
 */
export function linesOfBoth(own: LineRows, project: string, team: SentLines): LineRows {
  const here = new Set(own.lineWorkers(project).map(({ source, id }) => `${source}\n${id}`))
  const workers = team.workers.filter(({ source, native_id }) => {
    const ref = refFrom(source, native_id)
    return !here.has(`${ref.source}\n${ref.id}`)
  })
  const known = new Set(workers.map(({ conversation }) => conversation))
  const edits = team.edits
    .filter(({ conversation }) => known.has(conversation))
    .map(({ conversation, file, added, removed, ...one }) => ({
      ...one,
      conversation: -conversation,
      file: -file,
      added: keysSent(added),
      removed: keysSent(removed),
    }))
  const teamWorkers = workers.map(({ conversation, native_id, said, ...one }) => ({
    ...one,
    conversation: -conversation,
    name: one.id,
    id: native_id,
    said: keysSent(said),
  }))
  return {
    lineWorkers: () => [...own.lineWorkers(project), ...teamWorkers],
    lineFiles: () => [...own.lineFiles(project), ...team.files.map(({ file, path }) => ({ file: -file, path }))],
    editsOfFiles: (files) => {
      const wanted = new Set(files)
      const ofOwn = own.editsOfFiles(files.filter((file) => file > 0))
      return [...ofOwn, ...edits.filter(({ file }) => wanted.has(file))].sort((a, b) => a.at - b.at)
    },
    ranCommits: () => [
      ...own.ranCommits(project),
      ...team.ran
        .filter(({ conversation }) => known.has(conversation))
        .map((one) => ({ ...one, conversation: -one.conversation })),
    ],
  }
}
