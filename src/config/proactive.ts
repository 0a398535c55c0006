import { isSamePath } from "../core/path-key.ts"
import { type ItemKind, KINDS } from "../core/suggestion.ts"
import type { SettingName, Settings } from "./settings.ts"

const SWITCHES = {
  fix: "proactive.enable_fixes",
  decision: "proactive.enable_decisions",
  change: "proactive.enable_recent_changes",
  document: "proactive.enable_docs",
  related_code: "proactive.enable_related_code",
  warning: "proactive.enable_warnings",
  conversation: "proactive.enable_conversations",
} as const satisfies Record<ItemKind, SettingName>

/** One switch for everything that is not asked for. */
export function isQuiet(env: Record<string, string | undefined>): boolean {
  return env.DEX_QUIET !== undefined && !["", "0", "false"].includes(env.DEX_QUIET)
}

type Mutes = readonly { type: "kind" | "project"; name: string }[]

/** What may be said unasked in a project: nothing where dex is to be silent. */
export function spokenKinds(
  settings: Settings,
  mutes: Mutes,
  project: string,
  platform = process.platform,
): Set<ItemKind> {
  return settings["proactive.enabled"] ? wantedKinds(settings, mutes, project, platform) : new Set()
}

/** The kinds of things that the user wants to be offered in a project, also when asking: none if it is muted. */
export function wantedKinds(
  settings: Settings,
  mutes: Mutes,
  project: string,
  platform = process.platform,
): Set<ItemKind> {
  if (isMuted(mutes, project, platform)) return new Set()
  const muted = new Set(mutes.filter(({ type }) => type === "kind").map(({ name }) => name))
  return new Set(KINDS.filter((kind) => settings[SWITCHES[kind]] && !muted.has(kind)))
}

export function isMuted(mutes: Mutes, project: string, platform = process.platform): boolean {
  return mutes.some(({ type, name }) => type === "project" && isSamePath(name, project, platform))
}
