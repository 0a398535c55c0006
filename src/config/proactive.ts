import { isSamePath } from "../core/path-key.ts"
import { type ItemKind, KINDS } from "../core/suggestion.ts"
import { type Settings, splitNames } from "./settings.ts"

/** Whether DEX_QUIET is set, which turns off everything that dex does unasked. */
export function isQuiet(env: Record<string, string | undefined>): boolean {
  return env.DEX_QUIET !== undefined && !["", "0", "false"].includes(env.DEX_QUIET)
}

type Mutes = readonly { type: "kind" | "project"; name: string }[]

/** Returns the kinds of suggestions that dex may show unasked in a project. Empty if dex should be silent. */
export function spokenKinds(
  settings: Settings,
  mutes: Mutes,
  project: string,
  platform = process.platform,
): Set<ItemKind> {
  return settings["proactive.enabled"] ? wantedKinds(settings, mutes, project, platform) : new Set()
}

/** Returns the kinds of suggestions that the user wants to see in a project, even on request. Empty if the project is muted. */
export function wantedKinds(
  settings: Settings,
  mutes: Mutes,
  project: string,
  platform = process.platform,
): Set<ItemKind> {
  if (isMuted(mutes, project, platform)) return new Set()
  const mutedKinds = mutes.filter(({ type }) => type === "kind").map(({ name }) => name)
  const hiddenKinds = new Set([...splitNames(settings["proactive.off"]), ...mutedKinds])
  return new Set(KINDS.filter((kind) => !hiddenKinds.has(kind)))
}

export function isMuted(mutes: Mutes, project: string, platform = process.platform): boolean {
  return mutes.some(({ type, name }) => type === "project" && isSamePath(name, project, platform))
}
