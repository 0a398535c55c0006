import { createDex } from "../../app/dex.ts"
import { VERSION } from "../../app/version.ts"
import { glyphsOf } from "../../render/screen.ts"
import { many } from "../../render/words.ts"
import type { TypedSearchCache } from "../../search/typing.ts"
import { serveOrders } from "../../subprocess/serve.ts"
import { describeDeletions, upcomingDeletions } from "../../tools/deletions.ts"
import { resume } from "../../tools/resume/resume.ts"
import { notInstalledMessage } from "../print/resume.ts"
import { recordedSuggestions } from "../terminal/ask-to-speak.ts"
import { findQuickRows, findRankedRows, previewOf } from "./look-up.ts"
import type { LookUpAnswer, LookUpRequest } from "./start-look-up.ts"

// Answers the picker's requests in a separate process, so that drawing does not wait: a search for a word that is still being
// typed takes up to a second.

const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })

/** Reused from one key press to the next, because most rows stay the same. */
const cache: TypedSearchCache = new Map()

serveOrders(answerTo)

async function answerTo(request: LookUpRequest): Promise<LookUpAnswer> {
  switch (request.type) {
    case "typed":
      if (request.isAgain) cache.clear()
      return { found: await findQuickRows(dex, request.query, cache) }
    case "ranked":
      return { found: await findRankedRows(dex, request.query) }
    case "preview": {
      const { row, columns, color } = request
      return { preview: (await previewOf(dex, row, { columns, color, glyphs: glyphsOf(process.env) })) ?? null }
    }
    case "resumable": {
      const { problem, command } = await resume.run(dex, { id: request.ref })
      return { why_not: problem ?? notInstalledMessage(command[0] ?? "") ?? "" }
    }
    case "mark": {
      const { notes } = await import("../../tools/note/note.ts")
      const { conversation } = await notes.run(dex, { words: [request.ref], all: false, limit: 1, ...request.marks })
      cache.clear()
      return { marked: conversation! }
    }
    case "sources":
      return { sources: await sourcesWithConversations() }
    case "note":
      return { note: (await weekNote()) || (await deletionNote()) }
  }
}

async function sourcesWithConversations(): Promise<string[]> {
  const report = await (await dex.store()).sourceReport()
  return report.filter(({ kinds }) => (kinds.person ?? 0) > 0).map(({ source }) => source)
}

/** After the first week, points to `dex --plain`, which asks whether dex may make suggestions to the agents. */
async function weekNote(): Promise<string> {
  const suggestions = await recordedSuggestions({
    home: dex.home,
    env: process.env,
    suggestions: dex.suggestions,
    now: dex.now(),
  })
  if (suggestions === undefined || suggestions.length === 0) return ""
  return `dex would have made ${many(suggestions.length, "suggestion")} to agents. To allow this: \`dex --plain\``
}

/** Says what an agent will soon delete, and that dex has a copy. */
async function deletionNote(): Promise<string> {
  const deletions = await upcomingDeletions(dex)
  return (deletions && describeDeletions(deletions)) ?? ""
}
