import { errorLines } from "../core/error-text.ts"
import type { Moment } from "../core/suggestion.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"

const LOOKED_AT = 20_000
const MOST_NAMES = 20
/** No path is longer; what is, a key or a blob, would be tried from each of its signs on. */
const LONGEST_RUN = 300
const RUN = /[\w@.+/-]+/g
const PATH = /[\w@.+-]*(?:\/[\w@.+-]+)+|[\w@+-]+(?:\.[\w+-]+)*\.[A-Za-z]\w{0,7}\b/g

/** What a person's words point at: an error that they hold, and the first file of the project that they name. */
export function withPrompt(knowledge: Knowledge, moment: Moment): Moment {
  if (moment.prompt === undefined) return moment
  const prompt = moment.prompt.slice(0, LOOKED_AT)
  const file = moment.file ?? firstFile(knowledge, moment.project, prompt)
  return {
    ...moment,
    ...(file !== undefined && { file }),
    ...(moment.error === undefined && errorLines(prompt).length > 0 && { error: prompt }),
  }
}

function firstFile(knowledge: Knowledge, project: string, prompt: string): string | undefined {
  for (const name of new Set(pathsInPrompt(prompt))) {
    const found = knowledge.files.fileNamed(project, name.replace(/^\.?\//, ""))
    if (found !== undefined) return found
  }
  return undefined
}

/** What looks like a path or a file's name, in order. */
export function pathsInPrompt(prompt: string): string[] {
  const names: string[] = []
  for (const [run] of prompt.matchAll(RUN)) {
    if (run.length <= LONGEST_RUN) names.push(...(run.match(PATH) ?? []))
    if (names.length >= MOST_NAMES) break
  }
  return names.slice(0, MOST_NAMES)
}
