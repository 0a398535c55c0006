import { loadSettings } from "../../config/load.ts"
import { isQuiet, spokenKinds } from "../../config/proactive.ts"
import { pathKey } from "../../core/path-key.ts"
import type { Ref } from "../../core/ref.ts"
import { pathBelow } from "../../learn/paths.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { NEW_SESSION } from "../../suggest/finders/finder.ts"
import { RELEVANCE_WEIGHTS } from "../../suggest/relevance.ts"
import type { Trigger } from "../../suggest/subscriptions/matching.ts"
import { notifySubscriptions } from "../../suggest/subscriptions/notify.ts"
import { MAX_ITEMS, suggestItems } from "../../suggest/suggest.ts"
import type { Dex } from "../context.ts"
import { updatedKnowledge } from "../learned.ts"

/** The minimum relevance of an item. It is low, because each subscription has its own `min_relevance`. */
const MIN_RELEVANCE = 0.05
const MAX_FILES = 50
const RECENT_MS = 600_000

/** Notifies subscriptions about changed files. Returns the number of suggestions saved for them. */
export async function notifyAboutFiles(dex: Dex, project: string, files: readonly string[]): Promise<number> {
  return notifyAll(
    dex,
    project,
    files.slice(0, MAX_FILES).map((file) => ({ project, at: dex.now(), file })),
  )
}

/** Notifies subscriptions about what people have just written. Returns the number of suggestions saved for them. */
export async function notifyAboutMessages(dex: Dex, refs: readonly Ref[]): Promise<number> {
  if (!dex.hasSuggestions()) return 0
  const store = await dex.store()
  const projectsWithSubscribers = new Set(
    (await dex.suggestions())
      .subscriptions()
      .filter(matchesWords)
      .map(({ project }) => pathKey(project, dex.machine.platform)),
  )
  const hasSubscribers = (project: string) => projectsWithSubscribers.has(pathKey(project, dex.machine.platform))
  let savedCount = 0
  for (const ref of refs) {
    const row = await store.conversation(ref)
    if (row?.project === undefined || !mayBeFromPerson(row) || !hasSubscribers(row.project)) continue
    const since = dex.now() - RECENT_MS
    const recent = (await store.messages(ref)).filter(({ at = 0 }) => at >= since)
    const words = recent.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "text" && part.origin === "person" ? [part.text] : [])),
    )
    if (words.length === 0) continue
    const lastFile = recent
      .flatMap(({ effects }) => effects.flatMap((effect) => (effect.type === "file" ? [effect.path] : [])))
      .at(-1)
    const trigger = {
      project: row.project,
      at: dex.now(),
      text: words.join("\n"),
      lastFile,
    }
    savedCount += await notifyAll(dex, row.project, [trigger])
  }
  return savedCount
}

/**
 * True if a person may have written some of the conversation or note. A note by an agent also counts, but none of its text has
 * the origin `person`.
 */
function mayBeFromPerson({ kind }: ConversationRow): boolean {
  return kind === "person" || kind === "note"
}

function matchesWords({ patterns }: { patterns: { type: string }[] }): boolean {
  return patterns.some(({ type }) => type === "topic" || type === "entity")
}

/** Adds all definitions in the file to the trigger, because it is not known which of them the change touched. */
function withSymbols(knowledge: Knowledge, trigger: Trigger): Trigger {
  const { project, file } = trigger
  const path = file === undefined ? undefined : pathBelow(project, file)
  if (path === undefined) return trigger
  const names = knowledge.symbols
    .definitionsIn(project, path)
    .map(({ container, name }) => (container === undefined ? name : `${container}.${name}`))
  return { ...trigger, symbols: names }
}

async function notifyAll(dex: Dex, project: string, triggers: Trigger[]): Promise<number> {
  const { env } = dex.machine
  if (!dex.hasSuggestions() || isQuiet(env)) return 0
  const suggestions = await dex.suggestions()
  if (!suggestions.subscriptions(project).some(({ enabled }) => enabled)) return 0
  const { settings } = loadSettings({ file: dex.home.config, env, project })
  const kinds = spokenKinds(settings, suggestions.mutes(), project)
  if (kinds.size === 0) return 0
  const { knowledge } = await updatedKnowledge(dex)
  const options = {
    weights: RELEVANCE_WEIGHTS,
    learned: suggestions.weights(),
    floor: MIN_RELEVANCE,
    maxItems: MAX_ITEMS,
    kinds,
  }
  const sources = { knowledge, recent_change_days: settings["proactive.recent_change_days"] }
  const parts = {
    suggestions,
    clock: () => performance.now(),
    suggest: async (moment: Parameters<typeof suggestItems>[1]) => suggestItems(sources, moment, NEW_SESSION, options),
  }
  let savedCount = 0
  for (const trigger of triggers.map((trigger) => withSymbols(knowledge, trigger)))
    for (const notice of await notifySubscriptions(parts, trigger)) if (notice.saved.kept) savedCount++
  return savedCount
}
