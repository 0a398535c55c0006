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

/** The kinds of things that the user wants to be offered. */
export function enabledKinds(settings: Settings): Set<ItemKind> {
  return new Set(KINDS.filter((kind) => settings[SWITCHES[kind]]))
}
