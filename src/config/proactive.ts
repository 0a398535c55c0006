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

/** What may be said unasked in a project: nothing where dex is to be silent. */
export function spokenKinds(
  settings: Settings,
  mutes: readonly { type: "kind" | "project"; name: string }[],
  project: string,
): Set<ItemKind> {
  const isMuted = (type: string, name: string) => mutes.some((mute) => mute.type === type && mute.name === name)
  if (!settings["proactive.enabled"] || isMuted("project", project)) return new Set()
  return new Set([...enabledKinds(settings)].filter((kind) => !isMuted("kind", kind)))
}

/** The kinds of things that the user wants to be offered. */
export function enabledKinds(settings: Settings): Set<ItemKind> {
  return new Set(KINDS.filter((kind) => settings[SWITCHES[kind]]))
}
