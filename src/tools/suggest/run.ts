import { resolve } from "node:path"
import { loadSettings } from "../../config/load.ts"
import { isMuted, wantedKinds } from "../../config/proactive.ts"
import { DexError } from "../../core/error.ts"
import { messageText } from "../../core/format.ts"
import { formatRef, parseRef, sourceWithOwner } from "../../core/ref.ts"
import { type Moment, newSuggestionId } from "../../core/suggestion.ts"
import { checkoutAt } from "../../git/project.ts"
import { pathBelow } from "../../learn/paths.ts"
import { parseQuery } from "../../search/query.ts"
import { type SearchHit, type SearchInput, searchHistory } from "../../search/search.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { SymbolUse } from "../../store/knowledge/symbols.ts"
import type { Mute } from "../../store/suggestions/suggestions.ts"
import { namesOf, symbolOf } from "../../suggest/finders/code.ts"
import { NOTE_PREFIX } from "../../suggest/finders/decision.ts"
import { type NamingConversation, type NamingSection, NEW_SESSION } from "../../suggest/finders/finder.ts"
import { withRedactedNames } from "../../suggest/redacted-moment.ts"
import { isRelevanceFitted, RELEVANCE_WEIGHTS } from "../../suggest/relevance.ts"
import { MAX_ITEMS, suggestItems } from "../../suggest/suggest.ts"
import type { Dex } from "../context.ts"
import { sectionMarkOf } from "../docs/sections.ts"
import { updatedKnowledge } from "../learned.ts"
import { currentSession, folderOnDisk, isCurrentProject, projectNamed } from "../resolve.ts"
import { run as take } from "../suggestions/run.ts"
import type { SuggestInput } from "./suggest.ts"

export async function run(dex: Dex, input: SuggestInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const started = performance.now()
  const project = input.project_id === undefined ? dex.project : projectNamed(dex, input.project_id)
  const { knowledge, notes, isHidden } = await updatedKnowledge(dex, { project })
  const moment = await withRedactedNames(withSymbolAtCursor(knowledge, momentOf(dex, input, project)))
  const code = input.all && !isHidden(project) ? codeAround(knowledge, moment) : undefined
  const suggestions = await dex.suggestions()
  const { settings } = loadSettings({
    file: dex.home.config,
    env: dex.machine.env,
    project: folderOnDisk(dex, project),
  })
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
          documents: kinds.has("document") ? await sectionsNaming(dex, moment) : undefined,
          conversations: kinds.has("conversation") ? await conversationsThatName(dex, moment) : undefined,
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
          floor: 0,
          maxItems: settings["proactive.max_suggestions"],
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
    suggestions: items.map(({ key, features, ...item }) => ({
      ...item,
      relevance:
        isRelevanceFitted(item.kind, features, RELEVANCE_WEIGHTS) && !key.startsWith(NOTE_PREFIX)
          ? Number(item.relevance.toFixed(2))
          : undefined,
    })),
    code,
    waiting: waiting.length > 0 ? waiting : undefined,
    notes,
  }
}

const MAX_DEFINITIONS = 200
const MAX_USES = 10_000

/** Every definition of the moment's symbol, who uses it, and what it calls. Uses that only have its name come last. */
function codeAround({ symbols }: Knowledge, { project, symbol }: Moment) {
  if (symbol === undefined) throw new DexError("usage", "--all needs a symbol: dex suggest --symbol refreshToken --all")
  const [, container, name = symbol] = /^(.+)(?:\.|#|::)(\w+)$/.exec(symbol) ?? []
  const definitions = symbols
    .definitionsNamed(project, name, MAX_DEFINITIONS)
    .filter((one) => container === undefined || one.container === container)
  const placeOf = ({ path, line, container }: { path: string; line: number; container?: string }) => ({
    file: path,
    line,
    in: container,
  })
  const uses = definitions.flatMap((one) => symbols.usesOf(project, one, MAX_USES))
  const callers = new Map<string, SymbolUse>()
  for (const use of [...uses.filter(isResolved), ...uses])
    if (!callers.has(`${use.path}:${use.line}`)) callers.set(`${use.path}:${use.line}`, use)
  return {
    definitions: definitions.map((one) => ({ ...placeOf(one), kind: one.kind })),
    callers: [...callers.values()].map((use) => ({ ...placeOf(use), kind: use.kind, resolution: use.resolution })),
    callees: definitions
      .flatMap((one) => symbols.callsIn(project, one))
      .map(({ symbol: called, resolution }) => ({ ...placeOf(called), name: called.name, resolution })),
  }
}

const isResolved = ({ resolution }: SymbolUse) => resolution === "resolved"

function muteNotes(mutes: readonly Mute[], project: string): string[] {
  if (isMuted(mutes, project))
    return ["This project is muted. `dex suggest --mute . --off` turns suggestions on again."]
  return mutes.flatMap(({ type, name }) =>
    type === "kind" ? [`Muted: ${name}. \`dex suggest --mute ${name} --off\` turns it on again.`] : [],
  )
}

/** The symbol at the cursor is what the moment is about, if none was named. */
function withSymbolAtCursor(knowledge: Knowledge, moment: Moment): Moment {
  const { project, file } = moment
  if (file === undefined || moment.symbol !== undefined) return moment
  const symbol = symbolOf(knowledge, { ...moment, file: pathBelow(project, file) })
  return symbol ? { ...moment, symbol: symbol.name } : moment
}

const MAX_SECTIONS_READ = 8
/** A ref is part of dex's own lines, so it contains no other heading, which may be a sentence with markup. */
const PLAIN_HEADING = /^[\p{L}\p{N} ._'()-]{1,80}$/u

/** Sections of documents that contain the name of the symbol or of the file. */
async function sectionsNaming(dex: Dex, moment: Moment): Promise<NamingSection[]> {
  const store = await dex.store()
  if ((await store.collections()).length === 0) return []
  const found: NamingSection[] = []
  for (const name of namesOf(moment)) {
    const hits = await hitsThatName(dex, name, {
      among: "docs",
      inside: moment.project,
      by: "message",
      limit: MAX_SECTIONS_READ,
    })
    for (const { row, message } of hits) {
      const mark = sectionMarkOf(message)
      if (!message || !mark) continue
      const ref = `${formatRef(row.ref)}§${PLAIN_HEADING.test(mark.name) ? mark.name : mark.anchor}`
      found.push({ ref, document: row.ref.id, headings: mark.headings, text: messageText(message, "full") })
    }
  }
  return found
}

const MAX_CONVERSATIONS_READ = 8

/** Conversations in this project in which a person or an agent wrote the symbol's name. */
async function conversationsThatName(dex: Dex, { symbol, project, session }: Moment): Promise<NamingConversation[]> {
  if (symbol === undefined) return []
  const hits = await hitsThatName(dex, symbol, {
    among: "history",
    inside: project,
    project,
    kinds: ["person", "subagent"],
    roles: ["user", "assistant"],
    by: "conversation",
    prose: true,
    limit: MAX_CONVERSATIONS_READ,
  })
  return hits.flatMap(({ row, parent, number, message }) => {
    const { ref, title, imported_from } = parent ?? row
    if (!message || row.project !== project || [row.ref.id, ref.id].includes(session ?? "")) return []
    return [
      {
        ref: formatRef({ ...row.ref, number }),
        key: `conversation:${sourceWithOwner(ref)}:${ref.id}`,
        title: title?.text,
        at: message.at ?? row.ended_at,
        by: message.role === "user" ? ("person" as const) : ("agent" as const),
        imported_from,
        text: messageText(message, "stripped"),
      },
    ]
  })
}

type NameSearch = Omit<SearchInput, "query" | "offset">

async function hitsThatName(dex: Dex, name: string, search: NameSearch): Promise<SearchHit[]> {
  const query = parseQuery(`"${name.replaceAll('"', " ")}"`, () => false)
  const { hits } = await searchHistory(await dex.store(), await dex.index(), { ...search, query, offset: 0 })
  return hits
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
