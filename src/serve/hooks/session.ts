import { closeSync, readSync } from "node:fs"
import { agents } from "../../agents/registry.ts"
import { openFile } from "../../core/read-file.ts"
import type { Moment } from "../../core/suggestion.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { Session } from "../../suggest/session.ts"

/** The end of a transcript shows what the session knows; reading a long one completely would take longer than an agent waits. */
const MOST_BYTES = 512 << 10
/** How agents mark a line of their transcript that contains a tool's output. */
const PRINTED = new RegExp(`"(?:${agents.flatMap(({ printedMarks = [] }) => printedMarks).join("|")})"`)

/** The session's knowledge: from the end of its transcript, and from its messages that are already in the history. */
export function sessionOf(
  knowledge: Knowledge,
  moment: Moment,
  transcript: string | undefined,
  seen: ReadonlySet<string>,
): Session {
  const lines = transcript === undefined ? [] : endOf(transcript).split("\n")
  const [spoken, printed] = [lines.filter((line) => !PRINTED.test(line)), lines.filter((line) => PRINTED.test(line))]
  const prompt = moment.prompt ?? ""
  const root = moment.source && moment.session ? [{ source: moment.source, root: moment.session }] : []
  return {
    files: knowledge.files
      .workedIn(moment.project, root)
      .sort((a, b) => a.at - b.at)
      .map(({ path }) => path),
    prompt,
    named: (name) => prompt.includes(name) || spoken.some((line) => line.includes(name)),
    listed: (name) => printed.some((line) => line.includes(name)),
    seen,
  }
}

/** Empty if it cannot be read: agents write their transcripts when they like. */
function endOf(path: string): string {
  try {
    const { fd, stat } = openFile(path)
    try {
      const buffer = Buffer.alloc(Math.min(stat.size, MOST_BYTES))
      const read = readSync(fd, buffer, 0, buffer.length, stat.size - buffer.length)
      return buffer.toString("utf8", 0, read)
    } finally {
      closeSync(fd)
    }
  } catch {
    return ""
  }
}
