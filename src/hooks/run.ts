import { existsSync } from "node:fs"
import { basename, resolve } from "node:path"
import { fields } from "../agents/hooks.ts"
import type { HookInput } from "../agents/kit/agent.ts"
import { agentOf } from "../agents/registry.ts"
import { dexHome } from "../config/home.ts"
import { loadSettings } from "../config/load.ts"
import { isQuiet, spokenKinds } from "../config/proactive.ts"
import { type Moment, newSuggestionId } from "../core/suggestion.ts"
import { checkoutAt, createProjectFinder } from "../git/project.ts"
import { openSuggestions } from "../store/suggestions/suggestions.ts"
import { pathBelow } from "../suggest/paths.ts"
import { withRedactedNames } from "../suggest/redacted-moment.ts"
import { contextText } from "./context-text.ts"
import { BUSY_MS, suggestNow } from "./suggest-now.ts"

export type HookCall = {
  source: string
  event: string
  /** What the agent wrote, as it came. */
  stdin: string
  env: Record<string, string | undefined>
  now: number
  /** Since when the agent waits. */
  started: number
  /** How many ms it still waits. */
  left(): number
  /** Where `dex-hook` looks for what to say: now, or at the session's next event. Absent: it is printed. */
  late?: string
}

/** It takes this long at most to note down what is said. What cannot be noted in time is not said, and may be said later. */
const SAVING_MS = BUSY_MS + 10

/** What to print: an empty text where there is nothing to say. Throws where something fails. */
export async function answerHook({ source, event, stdin, env, now, started, left, late }: HookCall): Promise<string> {
  if (isQuiet(env)) return ""
  const agent = await agentOf(source)?.hooks?.()
  const told = agent?.moment(event, inputIn(stdin))
  if (!agent || !told) return ""
  // A name that somebody put before the session's own.
  if (late !== undefined && !basename(late).startsWith(`${told.session}.`)) return ""
  const { cwd, transcript, ...about } = told
  const home = dexHome(env)
  if (!existsSync(home.history)) return ""
  const project = createProjectFinder()(cwd)
  const checkout = checkoutAt(cwd)
  // In a worktree too, a file is known by its place in the project.
  const file = about.file && ((checkout && pathBelow(checkout.root, resolve(cwd, about.file))) ?? about.file)
  const moment: Moment = await withRedactedNames({
    ...about,
    ...(file !== undefined && { file }),
    ...(checkout?.branch !== undefined && { branch: checkout.branch }),
    project,
    source,
    at: now,
  })
  const { settings } = loadSettings({ file: home.config, env, project })
  if (!settings["proactive.enabled"]) return ""

  let redact = (text: string) => text
  const suggestions = openSuggestions(home.suggest, { busyMs: BUSY_MS, redact: (text) => redact(text) })
  try {
    const kinds = spokenKinds(settings, suggestions.mutes(), project)
    if (kinds.size === 0) return ""
    const would = settings["proactive.mode"] !== "speak"
    const seen = suggestions.seen(source, told.session, would)
    const items = suggestNow({
      knowledge: home.knowledge,
      suggestions,
      settings,
      moment,
      ...(transcript !== undefined && { transcript }),
      kinds,
      seen,
    })
    if (items.length === 0) return ""
    // Only now: most moments are met with silence.
    redact = (await import("../redact/redact.ts")).redactText
    if (left() < SAVING_MS) throw new Error(`no time was left to say ${items.length}`)
    // What could not be kept would be said again at the next moment: so it is not said. Nor what another hook of this
    // session, which was asked before and took long, has said meanwhile.
    const kept = suggestions.save(
      {
        id: newSuggestionId(),
        moment,
        items,
        status: would ? "pending" : "shown",
        latency_ms: Date.now() - started,
      },
      { would, once: true },
    )
    if (!kept.kept) throw new Error(kept.why)
    if (would) return ""
    return late === undefined ? agent.answer(event, contextText(items)) : agent.piece(contextText(items))
  } finally {
    suggestions.close()
  }
}

function inputIn(stdin: string): HookInput {
  try {
    return fields(JSON.parse(stdin))
  } catch {
    return {} // not for us to complain about: an agent's work goes on
  }
}
