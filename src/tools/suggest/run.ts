import { resolve } from "node:path"
import { loadSettings } from "../../config/load.ts"
import { isMuted, wantedKinds } from "../../config/proactive.ts"
import { DexError } from "../../core/error.ts"
import { messageText } from "../../core/format.ts"
import { formatRef, parseRef } from "../../core/ref.ts"
import { type Moment, newSuggestionId } from "../../core/suggestion.ts"
import { checkoutAt } from "../../git/project.ts"
import { fileNameOf, pathBelow } from "../../learn/paths.ts"
import { parseQuery } from "../../search/query.ts"
import { searchHistory } from "../../search/search.ts"
import type { Mute } from "../../store/suggestions/suggestions.ts"
import { withRedactedNames } from "../../suggest/redacted-moment.ts"
import { RELEVANCE_WEIGHTS } from "../../suggest/relevance.ts"
import { NEW_SESSION } from "../../suggest/session.ts"
import { MAX_ITEMS, suggestItems } from "../../suggest/suggest.ts"
import type { Dex } from "../context.ts"
import { sectionMarkOf } from "../docs/sections.ts"
import { updatedKnowledge } from "../learned.ts"
import { currentSession, isCurrentProject, projectNamed } from "../resolve.ts"
import { run as take } from "../suggestions/run.ts"
import type { SuggestInput } from "./suggest.ts"

/** The minimum relevance of an item. It is lower than for unrequested suggestions. */
const MIN_RELEVANCE_ON_REQUEST = 0.05

export async function run(dex: Dex, input: SuggestInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const started = performance.now()
  const project = input.project_id === undefined ? dex.project : projectNamed(dex, input.project_id)
  const { knowledge, notes, isHidden } = await updatedKnowledge(dex, { project })
  const moment = await withRedactedNames(momentOf(dex, input, project))
  const suggestions = await dex.suggestions()
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project })
  const mutes = suggestions.mutes()
  const kinds = wantedKinds(settings, mutes, project)
  const { source, session } = moment
  const seenItems = source && session ? suggestions.seen(source, session) : NEW_SESSION.seen
  const items = isHidden(project)
    ? []
    : suggestItems(
        {
          knowledge,
          recent_change_days: settings["proactive.recent_change_days"],
          documents: kinds.has("document") ? await documentsAbout(dex, moment) : undefined,
        },
        moment,
        {
          ...NEW_SESSION,
          seen: seenItems,
          files: (moment.recent_files ?? []).flatMap((path) => pathBelow(project, path) ?? []),
        },
        {
          weights: RELEVANCE_WEIGHTS,
          learned: suggestions.weights(),
          floor: MIN_RELEVANCE_ON_REQUEST,
          most: settings["proactive.max_suggestions"],
          kinds,
        },
      )
  notes.push(...muteNotes(mutes, project))
  if (isHidden(project) && dex.caller === undefined)
    notes.push("The project is private, so dex makes suggestions only inside its folder.")
  const id = newSuggestionId()
  const status = "shown" as const
  const latency_ms = Math.round(performance.now() - started)
  if (items.length > 0) {
    const saved = suggestions.save({ id, moment, items, status, latency_ms })
    if (!saved.kept) notes.push(`This suggestion could not be recorded: ${saved.why}`)
  }
  const waiting = isCurrentProject(dex, project) ? (await take(dex, { take: true, limit: MAX_ITEMS })).suggestions : []
  return {
    id,
    session_id: moment.session,
    project_id: project,
    status,
    suggestions: items.map(({ key: _, features: __, ...item }) => ({
      ...item,
      relevance: Number(item.relevance.toFixed(2)),
    })),
    waiting: waiting.length > 0 ? waiting : undefined,
    notes,
  }
}

function muteNotes(mutes: readonly Mute[], project: string): string[] {
  if (isMuted(mutes, project))
    return ["This project is muted. `dex suggest --mute . --off` turns suggestions on again."]
  return mutes.flatMap(({ type, name }) =>
    type === "kind" ? [`Muted: ${name}. \`dex suggest --mute ${name} --off\` turns it on again.`] : [],
  )
}

const MAX_SECTIONS = 2

/** Sections of documents that mention the symbol or the file. */
async function documentsAbout(dex: Dex, { symbol, file }: Moment) {
  const name = symbol ?? (file === undefined ? undefined : fileNameOf(file))
  const store = await dex.store()
  if (name === undefined || (await store.collections()).length === 0) return []
  const { hits } = await searchHistory(store, await dex.index(), {
    among: "docs",
    inside: dex.project,
    query: parseQuery(`"${name.replaceAll('"', " ")}"`, () => false),
    by: "message",
    limit: MAX_SECTIONS,
    offset: 0,
  })
  return hits.flatMap(({ row, message }) => {
    const mark = sectionMarkOf(message)
    if (!message || !mark) return []
    const heading = mark.headings.at(-1) ?? row.ref.id
    return [{ ref: `${formatRef(row.ref)}§${mark.name}`, heading, text: messageText(message, "full") }]
  })
}

function momentOf(dex: Dex, input: SuggestInput, project: string): Moment {
  const { current_file, current_symbol, cursor_position, recent_files, error } = input
  const session = input.session_id ?? currentSession(dex)
  const current = session === undefined ? undefined : sessionOf(session)
  const checkout = checkoutAt(dex.cwd)
  const pathOf = (path: string) => {
    const absolute = resolve(dex.cwd, path)
    return (checkout && pathBelow(checkout.root, absolute)) ?? absolute
  }
  return {
    event: "asked",
    project,
    at: dex.now(),
    ...current,
    branch: checkout?.branch,
    file: current_file === undefined ? undefined : pathOf(current_file),
    symbol: current_symbol,
    line: cursor_position?.line,
    column: cursor_position?.column,
    recent_files: recent_files?.map(pathOf),
    error,
  }
}

/** The fields of a moment that name a session. A ref also names the agent; a bare id does not. */
function sessionOf(text: string): Pick<Moment, "source" | "session"> {
  const ref = parseRef(text)
  return { session: ref?.prefix ?? text, source: ref?.source }
}
