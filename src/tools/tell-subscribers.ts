import type { Ref } from "../core/ref.ts"
import { KINDS } from "../core/suggestion.ts"
import { NEW_SESSION } from "../suggest/session.ts"
import type { Trigger } from "../suggest/subscriptions.ts"
import { MOST_ITEMS, suggest } from "../suggest/suggest.ts"
import { tell } from "../suggest/trigger.ts"
import { WEIGHTS } from "../suggest/weights.ts"
import type { Dex } from "./context.ts"
import { learnedOf } from "./learned.ts"

/** What a subscription asks for is decided by its own `min_relevance`. */
const FLOOR = 0.05
const MOST_FILES = 50
const NEW_WITHIN_MS = 600_000

/** Tells subscriptions of files that changed. Returns how many suggestions were kept for them. */
export async function tellOfFiles(dex: Dex, project: string, files: readonly string[]): Promise<number> {
  return tellAll(
    dex,
    project,
    files.slice(0, MOST_FILES).map((file) => ({ project, at: dex.now(), file })),
  )
}

/** Tells subscriptions of what people have just said. */
export async function tellOfMessages(dex: Dex, refs: readonly Ref[]): Promise<number> {
  if (!dex.hasSuggestions()) return 0
  const store = await dex.store()
  const concerned = new Set(
    (await dex.suggestions())
      .subscriptions()
      .filter(hasWords)
      .map(({ project }) => project),
  )
  let told = 0
  for (const ref of refs) {
    const row = await store.conversation(ref)
    if (row?.project === undefined || row.kind !== "person" || !concerned.has(row.project)) continue
    const since = dex.now() - NEW_WITHIN_MS
    const recent = (await store.messages(ref)).filter(({ at = 0 }) => at >= since)
    const words = recent.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "text" && part.origin === "person" ? [part.text] : [])),
    )
    if (words.length === 0) continue
    const beside = recent
      .flatMap(({ effects }) => effects.flatMap((effect) => (effect.type === "file" ? [effect.path] : [])))
      .at(-1)
    const trigger = {
      project: row.project,
      at: dex.now(),
      text: words.join("\n"),
      ...(beside !== undefined && { beside }),
    }
    told += await tellAll(dex, row.project, [trigger])
  }
  return told
}

function hasWords({ patterns }: { patterns: { type: string }[] }): boolean {
  return patterns.some(({ type }) => type === "topic" || type === "entity")
}

async function tellAll(dex: Dex, project: string, triggers: Trigger[]): Promise<number> {
  if (!dex.hasSuggestions() || dex.machine.env.DEX_QUIET === "1") return 0
  const suggestions = await dex.suggestions()
  if (!suggestions.subscriptions(project).some(({ enabled }) => enabled)) return 0
  const mutes = suggestions.mutes()
  if (mutes.some(({ type, name }) => type === "project" && name === project)) return 0
  const muted = new Set(mutes.filter(({ type }) => type === "kind").map(({ name }) => name))
  const { knowledge } = await learnedOf(dex)
  const options = {
    weights: WEIGHTS,
    learned: suggestions.weights(),
    floor: FLOOR,
    most: MOST_ITEMS,
    kinds: new Set(KINDS.filter((kind) => !muted.has(kind))),
  }
  const parts = {
    suggestions,
    clock: () => performance.now(),
    suggest: async (moment: Parameters<typeof suggest>[1]) => suggest({ knowledge }, moment, NEW_SESSION, options),
  }
  let kept = 0
  for (const trigger of triggers) for (const told of await tell(parts, trigger)) if (told.kept.kept) kept++
  return kept
}
