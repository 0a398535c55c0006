import { DAY_MS, localDay } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import { fileNameOf, isPlainPath } from "../../learn/paths.ts"
import type { Finder } from "./finder.ts"

// The last conversation that changed this very file. When it was last changed at all, git knows.

const MOST_VISITS = 20
const MOST_FILES = 3
export const findConversation: Finder = ({ knowledge }, moment, session) => {
  const { file } = moment
  if (file === undefined) return []
  const visits = knowledge.files
    .visitsTo(moment.project, file, MOST_VISITS)
    .filter(({ edits, id, root }) => edits > 0 && id !== moment.session && root !== moment.session)
  const [last] = visits
  if (!last) return []
  const others = knowledge.files
    .workedIn(moment.project, [last])
    .filter(({ path, edits }) => edits > 0 && path !== file && isPlainPath(path) && !session.named(fileNameOf(path)))
    .sort((a, b) => b.edits - a.edits)
    .slice(0, MOST_FILES)
  const day = localDay(last.at)
  const also = others.length > 0 ? `, together with ${others.map(({ path }) => path).join(", ")}` : ""
  const titled = last.title !== undefined ? ` "${last.title.slice(0, 100)}"` : ""
  return [
    {
      kind: "conversation",
      key: `conversation:${last.source}:${last.root}`,
      title: `${fileNameOf(file)} was last edited in a conversation on ${day}${titled}`,
      summary: `+${last.added} −${last.removed}${also}.`,
      reason: `That conversation is the last one that edited ${file}.`,
      ref: formatRef({ source: last.source, id: last.id, number: last.last_number }),
      file,
      names: others.map(({ path }) => fileNameOf(path)),
      features: {
        visits: Math.log1p(visits.length),
        others: others.length,
        within_days: Math.exp(-Math.max(0, moment.at - last.at) / (2 * DAY_MS)),
        within_weeks: Math.exp(-Math.max(0, moment.at - last.at) / (14 * DAY_MS)),
        done: Math.log1p(session.files.length),
        size: Math.log1p(last.added + last.removed),
      },
    },
  ]
}
